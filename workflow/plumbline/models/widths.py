"""The few widths to which batches are padded, so that few shapes need be recorded."""

import numpy as np


def choose_widths(needed: np.ndarray, longest: int, repeats: int, cost: float, most: int | None = None) -> np.ndarray:
    """Widths, ascending, that waste the least; a batch is padded to the first that holds it.

    needed: the width of each batch of a pass, of which there will be `repeats`. A batch costs its padded width, a new
    width as much as `cost` batches of it, and more if there would else be more than `most` of them. `longest` is always
    one of the widths.
    """
    chosen = _cheapest(needed, longest, repeats, cost)
    while most and len(chosen) > most:
        cost *= 1.5
        chosen = _cheapest(needed, longest, repeats, cost)
    return chosen


def _cheapest(needed: np.ndarray, longest: int, repeats: int, cost: float) -> np.ndarray:
    """Exact, by dynamic programming over where to cut the sorted widths."""
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
