"""The result of a measure, and the options that measures share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import torch

from plumbline.data.instances import Instances
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator

Measure = TypeVar("Measure", bound=Callable[..., Any])


@dataclass(frozen=True)
class AttributionOptions:
    """The options of measures of input vectors: the output to explain, the baseline and which tokens are features."""

    target: Literal["predicted", "gold"] | int = "predicted"
    function: Literal["probability", "logit", "difference"] = "probability"
    baseline: Literal["pad", "zero"] = "pad"
    texts: Literal["first", "both"] = "both"
    specials: bool = True


def passes_in(
    precision: Literal["bf16x3", "bf16x3-tf32", "tf32"], bilstm: Literal["float32", "tf32"] = "float32"
) -> Callable[[Measure], Measure]:
    """Mark a measure that ranks words the same if the passes of a transformer, or of a BiLSTM, have this precision on a
    GPU: Kendall's τ with float32 is 0.999 or more (docs/reference/engine.md)."""

    def mark(measure: Measure) -> Measure:
        measure.precision, measure.bilstm_precision = precision, bilstm  # type: ignore[attr-defined]
        return measure

    return mark


@dataclass(frozen=True)
class Importances:
    """One score per word of each instance. `target[i]` is the explained class; None if the measure explains none.

    A measure may also score the words of second texts, `pair`, and the special tokens, those of the first text first.
    If its scores should sum to a change of the output, `residual` is the error of the sum.
    """

    scores: list[np.ndarray]
    target: np.ndarray | None = None
    pair: list[np.ndarray] | None = None
    specials: list[np.ndarray] | None = None
    residual: np.ndarray | None = None


# Computes a measure for several sets of options together.
Together = Callable[[Evaluator, Instances, Sequence[Mapping[str, Any]]], list[Importances]]


def computed_by(together: Together) -> Callable[[Measure], Measure]:
    """Mark a measure whose results for several sets of options come from shared passes."""

    def mark(measure: Measure) -> Measure:
        measure.together = together  # type: ignore[attr-defined]
        return measure

    return mark


def per_word(values: torch.Tensor, instances: Instances, index: np.ndarray, into: list[np.ndarray]) -> None:
    """Store the values of each instance's words, without padding and special tokens, from padded values [B, L]."""
    rows = values.detach().cpu().numpy()
    for row, i in zip(rows, index, strict=True):
        words = instances.maskable[i]
        into[i] = row[: len(words)][words]


class ScoreBuffer:
    """The scores of all instances, filled from batches in any order.

    `texts` selects whether second texts are included, `specials` whether special tokens are.
    """

    def __init__(self, instances: Instances, texts: Literal["first", "both"] = "both", specials: bool = True) -> None:
        self.instances = instances
        self.scores = empty_scores(instances)
        self.pair = empty_scores(instances) if instances.pair is not None and texts == "both" else None
        self.specials = empty_scores(instances) if specials else None
        self.target = np.empty(len(instances), dtype=np.int32)

    def add(self, index: np.ndarray, batch: Batch, values: torch.Tensor, classes: torch.Tensor | None = None) -> None:
        """Store the values [B, T] of a batch and the explained classes [B] at the positions `index` [B]."""
        rows = values.detach().cpu().numpy().astype(np.float32)
        width = batch.ids.shape[1]
        for row, i in zip(rows, index, strict=True):
            words = self.instances.maskable[i]
            first = row[: len(words)]
            self.scores[i] = first[words]
            specials = [first[~words]]
            if self.pair is not None and self.instances.pair is not None:
                second = row[width : width + len(self.instances.pair[i])]
                words = self.instances.pair_words(i)
                self.pair[i] = second[words]
                specials.append(second[~words])
            if self.specials is not None:
                self.specials[i] = np.concatenate(specials)
        if classes is not None:
            self.target[index] = classes.cpu().numpy()

    def importances(self, explained: bool = True) -> Importances:
        """All scores; `explained` is False if the measure explains no class."""
        return Importances(self.scores, self.target if explained else None, self.pair, self.specials)


def empty_scores(instances: Instances) -> list[np.ndarray]:
    """An empty array for each instance."""
    return [np.empty(0, dtype=np.float32)] * len(instances)
