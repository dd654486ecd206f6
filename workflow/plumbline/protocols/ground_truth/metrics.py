"""Whether importances find a known truth: its share, its place among the top words and its rank (Zhou et al. 2022)."""

import numpy as np

from plumbline.registry import metric
from plumbline.training.performance import midranks


@metric(
    "above_region",
    direction="higher",
    range=[None, 1],
    unit="share",
    equation="(Attr%(F) - |F| / n) / (1 - |F| / n); 0 is what equal importances give, 1 all on the truth",
)
def above_region(share: float, region: float) -> float:
    """The share of importance on a region relative to the region's share of the words, which makes regions of different
    size comparable; NaN for a region of all words."""
    return (share - region) / (1 - region) if region < 1 else float("nan")


@metric(
    "auc",
    range=[None, 1],
    unit="area",
    equation="P(|s_i| > |s_j|) + ½ P(|s_i| = |s_j|) for i of the truth and j not; chance is ½",
)
@metric(
    "found",
    direction="higher",
    range=[0, 1],
    unit="share",
    equation="|top_k(|s|) ∩ F| / k with k = |F|, the size of the truth; chance is k / n",
)
def found_and_auc(weights: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """The share of the truth among as many top words, and the probability that it ranks above another word (AUC)."""
    n, k = len(weights), int(truth.sum())
    if k == 0:
        return np.nan, np.nan
    least = np.partition(weights, n - k)[n - k]
    above, tied = weights > least, weights == least
    hits = (above & truth).sum() + (k - above.sum()) * (tied & truth).sum() / tied.sum()
    if k == n:
        return float(hits / k), np.nan
    ranks = midranks(weights)[truth].sum()
    return float(hits / k), float((ranks - k * (k + 1) / 2) / (k * (n - k)))


def best_found_and_auc(weights: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Whether the top word is of the truth, and the AUC of the best word of the truth, scaled so that chance is ½.

    Another word ranks below the best of k with probability a, which is k / (k + 1) by chance: 1 - ½ (k + 1) (1 - a).
    """
    k = int(truth.sum())
    if k == 0:
        return np.nan, np.nan
    top, best, others = weights == weights.max(), weights[truth].max(), weights[~truth]
    found = float((top & truth).sum() / top.sum())
    if not len(others):
        return found, np.nan
    tied = (weights[truth] == best).sum()
    # Of another word and `tied` of the truth, each is first with equal probability.
    below = (others < best).mean() + (others == best).mean() * tied / (tied + 1)
    return found, float(1 - (k + 1) * (1 - below) / 2)
