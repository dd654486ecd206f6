"""Integrals along a path with as many points as it takes: until scores sum to the change of the output."""

from collections.abc import Callable

import numpy as np
import torch

from plumbline.models.evaluator import Evaluator

# Points are doubled until there are so many times as many.
MOST = 16


def gauss_legendre(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Points between 0 and 1 and their weights, exact for polynomials of degree 2 * steps - 1."""
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    return (1 + nodes) / 2, weights / 2


def complete(
    scores: torch.Tensor,
    change: torch.Tensor,
    again: Callable[[torch.Tensor, np.ndarray, np.ndarray], torch.Tensor],
    steps: int,
    tolerance: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores [B, T] with more points where they miss the change of the output [B], and what they still miss [B].

    `scores` are those of `steps` points; `again` gives those of some rows [n] with other points and weights. A row
    misses it if its sum is off by more than `tolerance` of the change, or of 1 if that is more; 0 leaves all as it is.
    """
    missing = scores.sum(1) - change
    bound = tolerance * change.abs().clamp(min=1)
    most = MOST * steps
    while tolerance > 0 and steps < most:
        rows = (missing.abs() > bound).nonzero().squeeze(1)
        if not len(rows):
            break
        steps = min(2 * steps, most)
        scores[rows] = again(rows, *gauss_legendre(steps))
        missing[rows] = scores[rows].sum(1) - change[rows]
    return scores, missing


class Residuals:
    """What the scores of each text miss, gathered over batches."""

    def __init__(self, count: int) -> None:
        self.values, self.changes = np.zeros(count, dtype=np.float32), np.zeros(count)

    def add(self, index: np.ndarray, missing: torch.Tensor, change: torch.Tensor) -> None:
        """Take those of a batch, of which `index` [B] are the positions."""
        self.values[index] = missing.detach().cpu().numpy()
        self.changes[index] = change.detach().cpu().numpy()

    def warn(self, evaluator: Evaluator, name: str, steps: int, tolerance: float) -> None:
        """Say of how many texts the scores miss more than they should."""
        missed = np.abs(self.values) > tolerance * np.maximum(np.abs(self.changes), 1)
        if tolerance > 0 and missed.any():
            evaluator.budget.note(
                f"{name}, seed {evaluator.seed}: the scores of {missed.sum()} of {len(missed)} texts miss the change "
                f"of the output by more than {tolerance:g}, by {np.abs(self.values).max():.2g} at most, with "
                f"{MOST * steps} points."
            )
