"""How large datasets are: as they lie in the working folder, as the config draws them, or as they were published."""

import csv
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from plumbline.config.resolved import Resolved
from plumbline.config.variants import PLAIN
from plumbline.errors import PlumblineError
from plumbline.registry import IMAGES
from plumbline.store import read_json

SPLITS = ("train", "dev", "test")
TABLE = Path(__file__).with_name("sizes.csv")


@dataclass(frozen=True)
class Size:
    """Instances of each split, and the mean length of a training text, in tokens; 0 where nothing is known."""

    counts: Mapping[str, int]
    length: float = 0.0

    def instances(self, splits: Sequence[str], sample: int | None = None) -> int:
        """Instances of some splits, of each at most so many."""
        found = [self.counts.get(split, 0) for split in splits]
        return sum(found if sample is None else [min(count, sample) for count in found])


@cache
def shipped() -> dict[tuple[str, bool], Size]:
    """Sizes of datasets by registered name, and of their manipulated variants where these are smaller."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {
            (row["dataset"], row["variant"] != PLAIN): Size(
                {split: int(row[split]) for split in SPLITS}, float(row["length"])
            )
            for row in csv.DictReader(file)
        }


def of_summary(summary: Mapping[str, Any]) -> Size:
    """The size that a `dataset.json` tells."""
    splits = summary["splits"]
    return Size({split: told["instances"] for split, told in splits.items()}, splits["train"]["mean_length"])


def in_folder(results: Path, dataset: str, variant: str) -> Size | None:
    """The size of a dataset that a folder of results holds."""
    for path in (results / "data" / dataset / variant / "dataset.json", results / "data" / dataset / "dataset.json"):
        if path.exists():
            # A plan is an estimate: a record of another form tells it nothing.
            with suppress(KeyError, TypeError, PlumblineError):
                return of_summary(read_json(path))
    return None


def expected(resolved: Resolved, dataset: str, variant: str) -> Size:
    """The size that a study's dataset will have, as its declaration, options and recipe say."""
    declaration, options = resolved.declarations["dataset", dataset], resolved.options["dataset", dataset]
    known = shipped().get((declaration.name, variant in resolved.manipulated)) or shipped().get(
        (declaration.name, False), Size(declaration.counts)
    )
    counts = dict(known.counts) | {split: options[split] for split in SPLITS if isinstance(options.get(split), int)}
    if limit := resolved.preparations[dataset].limit:
        counts = {split: min(count, limit) for split, count in counts.items()}
    length = known.length
    if isinstance(options.get("longest"), int) and isinstance(options.get("shortest"), int):
        usual = [declaration.options[name].default for name in ("shortest", "longest")]
        length *= (options["shortest"] + options["longest"]) / max(sum(usual), 1)
    # A picture is as long as it has pixels.
    if side := options.get("side") or (options.get("size") if declaration.task == IMAGES else 0):
        length = float(side**2)
    return replace(known, counts=counts, length=length)
