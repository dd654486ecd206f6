"""Metrics of erasure: areas over the perturbation curve (DeYoung et al. 2020), normalised by the best and worst
order (Edin et al. 2024), areas between curves (Samek et al. 2017), and soft metrics (Zhao & Aletras 2023)."""

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
    equation="Σ_x max(0, p(x) - p(x')) / Σ_x (p(x) - p(0)), x'_i = x_i ⊙ e, e ~ Bernoulli((1 - u_i)^γ)",
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
    equation="1 - Σ_x max(0, p(x) - p(x')) / Σ_x (p(x) - p(0)), x'_i = x_i ⊙ e, e ~ Bernoulli(u_i^γ)",
)
def soft_sufficiency(fall: FloatArray, fall_to_nothing: FloatArray) -> float:
    """1 minus the fall with unimportant words perturbed, as a share of the fall without any word, of all texts [N]."""
    return 1 - soft_comprehensiveness(fall, fall_to_nothing)


@metric(
    "normalised_aopc",
    direction="higher",
    range=[0, 1],
    unit="share",
    equation="(A(π) - min_σ A(σ)) / (max_σ A(σ) - min_σ A(σ)), A(π) = Σ_{k=1}^n (p(x) - p(x without π_1 … π_k)) / n",
)
def normalised_aopc(total: FloatArray, lowest: float, highest: float) -> FloatArray:
    """From the sum of outputs after each step: the lower it is, the larger is the area. All orders of a text share p(x)
    and the last step, so these cancel."""
    return (highest - total) / (highest - lowest)


@metric(
    "morf_lerf",
    direction="higher",
    range=[-1, 1],
    unit="probability",
    equation="Σ_{k=1}^n (p(x without its k least relevant words) - p(x without its k most relevant words)) / n",
)
def morf_lerf(most_relevant_first: FloatArray, least_relevant_first: FloatArray) -> FloatArray:
    """The area between two curves of outputs [..., steps], without the last step, at which they meet."""
    return (least_relevant_first - most_relevant_first).sum(-1) / (most_relevant_first.shape[-1] + 1)


def count_erased(words: np.ndarray, ratio: float) -> np.ndarray:
    """Number of words [N] in the top `ratio` percent of each text: at least one and never all; 0 for a single word."""
    return np.minimum(np.maximum(np.ceil(words * ratio / 100 - 1e-9), 1), words - 1).astype(np.int64)
