"""Sizes of datasets: as prepared in the working folder, as the config's options generate them, as published, or as the
user's own files have them."""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from plumbline.config.own_data import OWN, own_paths
from plumbline.config.resolved import Resolved
from plumbline.config.variants import PLAIN
from plumbline.errors import PlumblineError
from plumbline.registry import IMAGES
from plumbline.store import read_json

SPLITS = ("train", "dev", "test")
TABLE = Path(__file__).with_name("sizes.csv")


@dataclass(frozen=True)
class Size:
    """Instances per split, and the mean length of a training text in tokens; 0 if unknown."""

    counts: Mapping[str, int]
    length: float = 0.0

    def instances(self, splits: Sequence[str], sample: int | None = None) -> int:
        """Instances of some splits, at most `sample` of each."""
        counts = [self.counts.get(split, 0) for split in splits]
        return sum(counts if sample is None else [min(count, sample) for count in counts])


@cache
def packaged_sizes() -> dict[tuple[str, bool], Size]:
    """Sizes by registered dataset, and those of manipulated variants where they are smaller."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {
            (row["dataset"], row["variant"] != PLAIN): Size(
                {split: int(row[split]) for split in SPLITS}, float(row["length"])
            )
            for row in csv.DictReader(file)
        }


def stored_size(results: Path, dataset: str, variant: str) -> Size | None:
    """The size of a dataset from its `dataset.json` in a results folder."""
    for path in (results / "data" / dataset / variant / "dataset.json", results / "data" / dataset / "dataset.json"):
        if path.exists():
            # A plan is an estimate: a file with another structure is ignored.
            with suppress(KeyError, TypeError, PlumblineError):
                splits = read_json(path)["splits"]
                counts = {split: summary["instances"] for split, summary in splits.items()}
                return Size(counts, splits["train"]["mean_length"])
    return None


def own_size(resolved: Resolved, dataset: str) -> Size | None:
    """The size of own data in files that can be read, before filters; nothing is downloaded for it."""
    declaration, options = resolved.declarations["dataset", dataset], resolved.options["dataset", dataset]
    if declaration.name not in OWN or not own_paths(declaration.name, options):
        return None
    # Not at the top, because most plans have none.
    from plumbline.data.own_rows import own_instances

    with suppress(PlumblineError, OSError):
        instances = own_instances(resolved, dataset)
        training = [length for split, length in instances if split == "train"]
        return Size(Counter(split for split, _ in instances), sum(training) / max(len(training), 1))
    return None


def expected_size(resolved: Resolved, dataset: str, variant: str) -> Size:
    """The size that a study's dataset will have by its declaration, options and preparation."""
    declaration, options = resolved.declarations["dataset", dataset], resolved.options["dataset", dataset]
    known = packaged_sizes().get((declaration.name, variant in resolved.manipulated)) or packaged_sizes().get(
        (declaration.name, False), own_size(resolved, dataset) or Size(declaration.counts)
    )
    counts = dict(known.counts) | {split: options[split] for split in SPLITS if isinstance(options.get(split), int)}
    if limit := resolved.preparations[dataset].limit:
        counts = {split: min(count, limit) for split, count in counts.items()}
    length = known.length
    if isinstance(options.get("longest"), int) and isinstance(options.get("shortest"), int):
        defaults = [declaration.options[name].default for name in ("shortest", "longest")]
        length *= (options["shortest"] + options["longest"]) / max(sum(defaults), 1)
    # The length of an image is its number of pixels.
    if side := options.get("side") or (options.get("size") if declaration.task == IMAGES else 0):
        length = float(side**2)
    return replace(known, counts=counts, length=length)
