"""A small set of widths to which batches are padded, so that few shapes are recorded as CUDA graphs."""

import numpy as np


def choose_widths(needed: np.ndarray, longest: int, repeats: int, cost: float, most: int | None = None) -> np.ndarray:
    """The ascending widths with the least total cost; a batch is padded to the smallest width that fits.

    needed: the width of each batch of an epoch; there are `repeats` epochs. A batch costs its padded width, a new width
    `cost` batches of that width; `cost` is raised until there are at most `most` widths. `longest` is always included.
    """
    chosen = _cheapest(needed, longest, repeats, cost)
    while most and len(chosen) > most:
        cost *= 1.5
        chosen = _cheapest(needed, longest, repeats, cost)
    return chosen


def _cheapest(needed: np.ndarray, longest: int, repeats: int, cost: float) -> np.ndarray:
    """The exact optimum, by dynamic programming over the split points of the sorted widths."""
    candidates, counts = np.unique(np.append(needed, longest), return_counts=True)
    counts[-1] -= 1
    before = np.concatenate([[0], np.cumsum(counts)]) * repeats
    least = np.zeros(len(candidates) + 1)
    cut = np.zeros(len(candidates) + 1, dtype=int)
    for end in range(1, len(candidates) + 1):
        totals = least[:end] + (before[end] - before[:end] + cost) * candidates[end - 1]
        cut[end] = int(totals.argmin())
        least[end] = totals[cut[end]]
    chosen, end = [], len(candidates)
    while end:
        chosen.append(candidates[end - 1])
        end = cut[end]
    return np.array(chosen[::-1])
