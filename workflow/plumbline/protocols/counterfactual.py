"""What the two experiments that replace attention share: distances, and groups by how sharp the attention was."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from plumbline.store import QUARTILES

if TYPE_CHECKING:
    import torch

EVERY = "all"
# Bins of the largest weight (Jain & Wallace 2019, Figures 6 and 8); the last one is closed.
EDGES = (0.0, 0.25, 0.5, 0.75, 1.0)
BINS = tuple(f"[{low:.2f}, {high:.2f}{']' if high == EDGES[-1] else ')'}" for low, high in pairwise(EDGES))
# Above three classes the study reports only the whole.
MOST_CLASSES = 3
# Keeps logarithms finite, as in the study's code.
TINY = 1e-10


def total_variation(one: "torch.Tensor", other: "torch.Tensor") -> "torch.Tensor":
    """Half the summed distance of two distributions [..., C]; for two classes |p - q|."""
    return (one - other).abs().sum(-1) / 2


def negative_entropy(weights: "torch.Tensor") -> "torch.Tensor":
    """Σ a log(a + tiny) over the last dimension."""
    return (weights * (weights + TINY).log()).sum(-1)


def entropy_slope(weights: "torch.Tensor") -> "torch.Tensor":
    """The derivative of the negative entropy by each weight."""
    above = weights + TINY
    return above.log() + weights / above


def jensen_shannon(one: "torch.Tensor", other: "torch.Tensor") -> "torch.Tensor":
    """Jensen-Shannon divergence of weights [..., L], natural logarithm, from 0 to ln 2.

    ½ KL(a‖m) + ½ KL(b‖m) with m = (a + b)/2, written with the negative entropies of a, b and m.
    """
    mean = negative_entropy((one + other) / 2)
    return (negative_entropy(one) + negative_entropy(other)) / 2 - mean


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
    return pd.concat(parts, ignore_index=True).sort_values(groups, ignore_index=True)


def quartiles(groups: Any, column: str) -> dict[str, pd.Series]:
    """The three quartiles of a column, by the names of the tables."""
    return {f"{column}_{name}": groups[column].quantile(int(name[1:]) / 100) for name in QUARTILES}
