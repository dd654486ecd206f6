"""A sample of the texts that a seed explains, on which a protocol computes measures itself."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from plumbline.data.instances import Instances, draw_sample
from plumbline.protocols.explained import Explained

if TYPE_CHECKING:
    from plumbline.models.evaluator import Evaluator


@dataclass(frozen=True)
class SampledTexts:
    """Sampled texts at these `positions` of all explained `instances`."""

    instances: Instances
    positions: np.ndarray

    @classmethod
    def draw(cls, explained: Explained, instances: Instances, seed: int, count: int) -> "SampledTexts":
        """At most `count` texts of each split, of those that a seed explains."""
        positions = np.arange(len(instances))
        for size in (explained.sample, count):
            if size is not None:
                positions = positions[draw_sample(instances.split[positions], size, seed)]
        return cls(instances, positions)

    @property
    def texts(self) -> Instances:
        """The sampled texts alone."""
        return self.instances.take(self.positions)

    def compute(
        self, explained: Explained, evaluator: "Evaluator", measures: Iterable[str]
    ) -> dict[str, list[np.ndarray]]:
        """The scores of the sampled texts by each measure; one that counts in whole splits gets these as well."""
        by_splits: dict[tuple[str, ...], list[str]] = {}
        for measure in measures:
            by_splits.setdefault(tuple(explained.recomputed[measure]["splits"]), []).append(measure)
        scores: dict[str, list[np.ndarray]] = {}
        for splits, names in by_splits.items():
            read = np.union1d(self.positions, np.flatnonzero(np.isin(self.instances.split, splits)))
            computed = explained.compute(evaluator, self.instances.take(read), names)
            sampled = np.searchsorted(read, self.positions)
            scores |= {measure: [rows[i] for i in sampled] for measure, rows in computed.items()}
        return scores
