"""Path integrals with enough points that the scores sum to the change of the output."""

from collections.abc import Callable

import numpy as np
import torch

from plumbline.models.evaluator import Evaluator

# The number of points is doubled up to this multiple.
MAX_REFINEMENT = 16


def gauss_legendre(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Points between 0 and 1 and their weights, exact for polynomials of degree 2 * steps - 1."""
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    return (1 + nodes) / 2, weights / 2


def refine(
    scores: torch.Tensor,
    change: torch.Tensor,
    integrate: Callable[[torch.Tensor, np.ndarray, np.ndarray], torch.Tensor],
    steps: int,
    tolerance: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores [B, T] with more points where their sum misses the change of the output [B], and the remaining error [B].

    `scores` were computed with `steps` points; `integrate` recomputes some rows [n] with given points and weights. A
    row is refined if its error exceeds `tolerance` times the change, or times 1 if that is more; 0 refines none.
    """
    errors = scores.sum(1) - change
    bound = tolerance * change.abs().clamp(min=1)
    most = MAX_REFINEMENT * steps
    while tolerance > 0 and steps < most:
        rows = (errors.abs() > bound).nonzero().squeeze(1)
        if not len(rows):
            break
        steps = min(2 * steps, most)
        scores[rows] = integrate(rows, *gauss_legendre(steps))
        errors[rows] = scores[rows].sum(1) - change[rows]
    return scores, errors


class Residuals:
    """The completeness error of each text, collected over batches."""

    def __init__(self, count: int) -> None:
        self.values, self.changes = np.zeros(count, dtype=np.float32), np.zeros(count)

    def add(self, index: np.ndarray, errors: torch.Tensor, change: torch.Tensor) -> None:
        """Store the errors [B] and changes [B] of a batch at the positions `index` [B]."""
        self.values[index] = errors.detach().cpu().numpy()
        self.changes[index] = change.detach().cpu().numpy()

    def warn(self, evaluator: Evaluator, name: str, steps: int, tolerance: float) -> None:
        """Report how many texts exceed the tolerance, and how many have scores that are no numbers."""
        missed = np.abs(self.values) > tolerance * np.maximum(np.abs(self.changes), 1)
        if tolerance > 0 and missed.any():
            evaluator.budget.note(
                f"{name}, seed {evaluator.seed}: the scores of {missed.sum()} of {len(missed)} texts do not sum to the "
                f"change of the output: they differ from it by more than {tolerance:g}, at most by "
                f"{np.nanmax(np.abs(self.values)):.2g}, with {MAX_REFINEMENT * steps} points."
            )
        undefined = np.isnan(self.values) & np.isfinite(self.changes)
        if undefined.any():
            evaluator.budget.note(
                f"{name}, seed {evaluator.seed}: the scores of {undefined.sum()} of {len(undefined)} texts are not "
                "finite, although the output is: gradients overflow."
            )
