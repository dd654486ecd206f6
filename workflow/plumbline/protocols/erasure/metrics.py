"""Metrics of erasure: areas over the perturbation curve (DeYoung et al. 2020), soft metrics (Zhao & Aletras 2023)."""

import numpy as np
import numpy.typing as npt

from plumbline.registry import metric

FloatArray = npt.NDArray[np.float64]


@metric("comprehensiveness", direction="higher", equation="Σ_k (p(x) - p(x without its top k %)) / (|K| + 1)")
@metric(
    "sufficiency",
    direction="lower",
    range=[-1, 1],
    unit="probability",
    equation="Σ_k (p(x) - p(top k % of x)) / (|K| + 1)",
)
def aopc(falls: FloatArray) -> FloatArray:
    """The area over the perturbation curve from the falls [..., K] at each ratio; the fall of the whole text is 0."""
    return falls.sum(-1) / (falls.shape[-1] + 1)


@metric(
    "soft_comprehensiveness",
    direction="higher",
    range=[0, None],
    unit="share",
    equation="Σ_x max(0, p(x) - p(x')) / Σ_x (p(x) - p(0)), x'_i = x_i ⊙ e, e ~ Bernoulli(1 - a_i)",
)
def soft_comprehensiveness(fall: FloatArray, fall_to_nothing: FloatArray) -> float:
    """The fall with important words perturbed, as a share of the fall without any word; summed over all texts [N].

    Not a mean of each text's share, which is unbounded noise where the output hardly falls. Texts whose output does not
    fall without any word are ignored; NaN if there are no others.
    """
    falling = fall_to_nothing > 0
    total = fall_to_nothing[falling].sum()
    return float(np.maximum(fall[falling], 0).sum() / total) if total > 0 else float("nan")


@metric(
    "soft_sufficiency",
    direction="higher",
    range=[None, 1],
    unit="share",
    equation="1 - Σ_x max(0, p(x) - p(x')) / Σ_x (p(x) - p(0)), x'_i = x_i ⊙ e, e ~ Bernoulli(a_i)",
)
def soft_sufficiency(fall: FloatArray, fall_to_nothing: FloatArray) -> float:
    """1 minus the fall with unimportant words perturbed, as a share of the fall without any word, of all texts [N]."""
    return 1 - soft_comprehensiveness(fall, fall_to_nothing)


def count_erased(words: np.ndarray, ratio: float) -> np.ndarray:
    """Number of words [N] in the top `ratio` percent of each text: at least one and never all; 0 for a single word."""
    return np.minimum(np.maximum(np.ceil(words * ratio / 100 - 1e-9), 1), words - 1).astype(np.int64)


def rescale(scores: np.ndarray) -> np.ndarray:
    """Importances [words] of a text, min-max scaled to 0 … 1; ½ if all are equal. NaN counts as the minimum."""
    finite = np.nan_to_num(scores.astype(np.float64), nan=-np.inf)
    finite = np.where(np.isneginf(finite), finite[np.isfinite(finite)].min(initial=0.0), finite)
    width = np.ptp(finite) if len(finite) else 0.0
    return (finite - finite.min()) / width if width > 0 else np.full(len(finite), 0.5)
