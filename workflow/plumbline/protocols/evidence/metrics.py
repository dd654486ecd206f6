"""How well a ranking of words agrees with marked evidence (DeYoung et al. 2020); ties count in expectation."""

from math import comb

import numpy as np

from plumbline.registry import metric


@metric(
    "auprc",
    direction="higher",
    range=[0, 1],
    unit="share",
    equation="(1/k) Σ_{i∈E} precision at the rank of i, the mean over the orders of tied words; k = |E|",
)
def average_precision(weights: np.ndarray, evidence: np.ndarray) -> float:
    """The area under the curve of precision and recall, as average precision. weights, evidence: [n], k > 0 evidence.

    Equal weights give what a random order has in expectation: (H_n + (k - 1) (n - H_n) / (n - 1)) / n, with
    H_n = Σ_{i=1}^n 1/i; for long texts that is the share of evidence, k / n.
    """
    order = np.argsort(-weights, kind="stable")
    _, first, size = np.unique(-weights[order], return_index=True, return_counts=True)
    marked = np.add.reduceat(evidence[order].astype(np.int64), first)
    before = np.cumsum(marked) - marked
    first, before, tied, marked = (np.repeat(values, size) for values in (first, before, size, marked))
    rank = np.arange(len(weights))
    # A word of evidence among tied ones has this many others before it.
    others = (rank - first) * (marked - 1) / np.maximum(tied - 1, 1)
    return float((marked / tied * (before + 1 + others) / (rank + 1)).sum() / evidence.sum())


@metric("iou", direction="higher", range=[0, 1], unit="share", equation="|top_k(|s|) ∩ E| / |top_k(|s|) ∪ E|, k = |E|")
@metric(
    "token_f1",
    direction="higher",
    range=[0, 1],
    unit="share",
    equation="|top_k(|s|) ∩ E| / k with k = |E|, which is precision, recall and F1",
)
def top_k_overlap(weights: np.ndarray, evidence: np.ndarray) -> tuple[float, float]:
    """Token F1 and intersection over union of the evidence and as many top words; the mean over the orders of ties."""
    n, k = len(weights), int(evidence.sum())
    least = np.partition(weights, n - k)[n - k]
    above, tied = weights > least, weights == least
    taken, marked, total = int(k - above.sum()), int((tied & evidence).sum()), int(tied.sum())
    drawn = range(min(marked, taken) + 1)
    probability = np.array([comb(marked, i) * comb(total - marked, taken - i) / comb(total, taken) for i in drawn])
    hits = int((above & evidence).sum()) + np.array(drawn)
    return float(probability @ hits / k), float(probability @ (hits / (2 * k - hits)))


@metric(
    "above_random",
    direction="higher",
    range=[None, 1],
    unit="share",
    equation="(AUPRC - c) / (1 - c), c the AUPRC of a random order; 0 is chance, 1 all evidence first",
)
def above_random(auprc: float, chance: float) -> float:
    """AUPRC relative to that of a random order, which makes texts with different shares of evidence comparable."""
    return (auprc - chance) / (1 - chance)
