"""Bins of the largest attention weight, and summaries by predicted class and bin."""

from collections.abc import Callable, Iterable
from itertools import pairwise, product
from typing import Any

import numpy as np
import pandas as pd

from plumbline.figures.conventions import MOST_CLASSES
from plumbline.protocols.schemas import QUARTILES

EVERY = "all"
# Bins of the largest weight (Jain & Wallace 2019, Figures 6 and 8); the last one is closed.
EDGES = (0.0, 0.25, 0.5, 0.75, 1.0)
BINS = tuple(f"[{low:.2f}, {high:.2f}{']' if high == EDGES[-1] else ')'}" for low, high in pairwise(EDGES))


def weight_bins(largest: Iterable[float]) -> list[str]:
    """The bin of each largest weight."""
    return [BINS[i] for i in np.digitize(list(largest), EDGES[1:-1])]


def by_class_and_bin(frame: pd.DataFrame, keys: list[str], summary: Callable[[Any], pd.DataFrame]) -> pd.DataFrame:
    """A summary by predicted class (for at most three classes) and by bin, and over all classes and all bins."""
    frame = frame.assign(
        predicted_class=frame["predicted_class"].astype(str), max_attention_bin=weight_bins(frame["max_attention"])
    )
    classes = [{"predicted_class": EVERY}]
    if frame["predicted_class"].nunique() <= MOST_CLASSES:
        classes.append({})
    groups = [*keys, "predicted_class", "max_attention_bin"]
    parts = [
        summary(frame.assign(**class_, **bin_).groupby(groups, observed=True, sort=True))
        for class_, bin_ in product(classes, [{"max_attention_bin": EVERY}, {}])
    ]
    return pd.concat(parts, ignore_index=True).sort_values(groups, ignore_index=True).assign(status="ok", reason=None)


def quartiles(groups: Any, column: str) -> dict[str, pd.Series]:
    """The three quartiles of a column, with the column names of the tables."""
    return {f"{column}_{name}": groups[column].quantile(int(name[1:]) / 100) for name in QUARTILES}
