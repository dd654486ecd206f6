"""What the two experiments that replace attention share: groups by how sharp the attention was."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from plumbline.figures.conventions import MOST_CLASSES
from plumbline.protocols.schemas import QUARTILES

EVERY = "all"
# Bins of the largest weight (Jain & Wallace 2019, Figures 6 and 8); the last one is closed.
EDGES = (0.0, 0.25, 0.5, 0.75, 1.0)
BINS = tuple(f"[{low:.2f}, {high:.2f}{']' if high == EDGES[-1] else ')'}" for low, high in pairwise(EDGES))


def bin_of(largest: Iterable[float]) -> list[str]:
    """The bin of each largest weight."""
    places = np.digitize(list(largest), EDGES[1:-1])
    return [BINS[place] for place in places]


def by_class_and_bin(frame: pd.DataFrame, keys: list[str], summary: Callable[[Any], pd.DataFrame]) -> pd.DataFrame:
    """A summary by predicted class (none above three classes) and by bin, and over all of each."""
    frame = frame.assign(max_attention_bin=bin_of(frame["max_attention"]))
    frame["predicted_class"] = frame["predicted_class"].astype(str)
    classes = [EVERY] if frame["predicted_class"].nunique() > MOST_CLASSES else [EVERY, ""]
    groups = [*keys, "predicted_class", "max_attention_bin"]
    parts = []
    for class_ in classes:
        for bin_ in (EVERY, ""):
            whole = {"predicted_class": class_, "max_attention_bin": bin_}
            told = frame.assign(**{column: value for column, value in whole.items() if value})
            parts.append(summary(told.groupby(groups, observed=True, sort=True)))
    return pd.concat(parts, ignore_index=True).sort_values(groups, ignore_index=True).assign(status="ok", reason=None)


def quartiles(groups: Any, column: str) -> dict[str, pd.Series]:
    """The three quartiles of a column, by the names of the tables."""
    return {f"{column}_{name}": groups[column].quantile(int(name[1:]) / 100) for name in QUARTILES}
