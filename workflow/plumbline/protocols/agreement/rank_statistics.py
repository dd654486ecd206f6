"""Correlation of importance vectors: Kendall's tau-b, Spearman's rho and Pearson's r.

Every correlation takes scores [B, M, n]: B instances of one length n with M importance vectors each. It compares all
pairs of the M vectors within an instance and returns its value and p value, [B, M, M] each.
"""

import math
from collections.abc import Iterator
from functools import cache
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy import special  # `stats` is imported where it is used: the import takes longer than most of these functions

from plumbline.registry import metric

FloatArray = npt.NDArray[np.float64]

# Bounds the memory of pairwise comparisons, except that a chunk has at least one instance.
MEMORY_BUDGET_BYTES = 64 * 2**20
# For two vectors, scipy's n log n sort is faster than n^2 / 2 signs per vector beyond about this length (measured).
# It sorts once per pair of vectors, so the squared length at which both take the same time grows with M - 1.
SIGN_CROSSOVER = 300
LONGEST_EXACT_NULL = 33  # beyond it scipy's method="auto" uses the normal approximation even without ties


@metric(
    "kendall", direction="higher", range=[-1, 1], unit="correlation", equation="(C - D) / √((C + D + T_a)(C + D + T_b))"
)
def kendall_tau(scores: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Kendall's tau-b and its two-sided p value, as `scipy.stats.kendalltau`; NaN for constant vectors and n < 2."""
    values = finite_scores(scores)
    n_vectors, n = values.shape[1:]
    if n < 2:
        return _undefined(values)
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    opens_group = np.ones(values.shape, dtype=bool)
    opens_group[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    # One cumulative sum numbers the tie groups of all vectors, because every vector starts a new group.
    group = np.cumsum(opens_group).reshape(values.shape) - 1
    ties = np.bincount(group.ravel())[group]
    untied = math.comb(n, 2) - (ties - 1).sum(axis=-1) / 2
    sign_bytes = np.dtype(np.float32).itemsize * n_vectors * math.comb(n, 2)
    if n**2 > SIGN_CROSSOVER**2 * (n_vectors - 1) or sign_bytes > MEMORY_BUDGET_BYTES:
        concordance = _concordance_by_sorting(values, untied)
    else:
        # Ranks within the vector stay exact in float32; group numbers of a large batch would not.
        ranks = np.empty(values.shape, dtype=np.float32)
        np.put_along_axis(ranks, order, group - group[..., :1], axis=-1)
        concordance = _concordance_by_signs(ranks, sign_bytes)
    # 0 / 0 is the NaN of a constant vector; the root of the product makes identical vectors exactly 1.
    with np.errstate(invalid="ignore"):
        tau = concordance / np.sqrt(untied[:, :, None] * untied[:, None, :])
    return tau, np.where(np.isnan(tau), np.nan, _kendall_p_value(concordance, ties))


@metric("spearman", direction="higher", range=[-1, 1], unit="correlation", equation="pearson(rank(a), rank(b))")
def spearman(scores: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Spearman's rho and its two-sided p value, as `scipy.stats.spearmanr`.

    NaN for constant vectors and n < 2; p is also NaN at n = 2.
    """
    from scipy import stats

    values = finite_scores(scores)
    n = values.shape[-1]
    centred = stats.rankdata(values, axis=-1) - (n + 1) / 2
    products = centred @ centred.swapaxes(-1, -2)
    squares = np.diagonal(products, axis1=-2, axis2=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = np.clip(products / np.sqrt(squares[:, :, None] * squares[:, None, :]), -1, 1)
        t = rho * np.sqrt((n - 2) / ((1 + rho) * (1 - rho)))
    return rho, 2 * special.stdtr(n - 2, -np.abs(t))


@metric("pearson", direction="higher", range=[-1, 1], unit="correlation", equation="cov(a, b) / (σ_a σ_b)")
def pearson(scores: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Pearson's r and its two-sided p value, as `scipy.stats.pearsonr`.

    NaN for constant vectors and n < 2; p is 1 at n = 2.
    """
    from scipy import stats

    values = finite_scores(scores)
    if values.shape[-1] < 2:
        return _undefined(values)
    # NaN vectors give the NaN results of constant ones without scipy's warning for each call.
    varying = np.where((values == values[..., :1]).all(axis=-1, keepdims=True), np.nan, values)
    # scipy's own arithmetic, because at n = 3 one rounding error of r near 1 moves p by 1e-8.
    result = stats.pearsonr(varying[:, :, None, :], varying[:, None, :, :], axis=-1)
    return result.statistic, np.where(np.isnan(result.statistic), np.nan, result.pvalue)


def finite_scores(scores: npt.ArrayLike) -> FloatArray:
    """Scores [B, M, n] as doubles; raises ValueError for another shape, NaN or infinity."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 3:
        raise ValueError(f"Scores must have the shape [instances, vectors, length], not {list(values.shape)}.")
    if not np.isfinite(values).all():
        raise ValueError("Scores must be finite, but some are NaN or infinite.")
    return values


def _undefined(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    nan = np.full((*scores.shape[:2], scores.shape[1]), np.nan)
    return nan, nan.copy()


def instance_chunks(n_instances: int, bytes_per_instance: int) -> Iterator[slice]:
    """Slices of the instances whose comparisons fit into the memory budget."""
    step = max(1, MEMORY_BUDGET_BYTES // max(1, bytes_per_instance))
    return (slice(start, start + step) for start in range(0, n_instances, step))


def _concordance_by_signs(ranks: npt.NDArray[np.float32], bytes_per_instance: int) -> FloatArray:
    """Concordant minus discordant pairs of items [B, M, M] from integer-valued ranks [B, M, n]."""
    n_instances, n_vectors, n = ranks.shape
    concordance = np.empty((n_instances, n_vectors, n_vectors))
    for chunk in instance_chunks(n_instances, bytes_per_instance):
        # float32 counts exactly up to 2^24 pairs of items, more than the memory budget allows.
        signs = np.empty((*ranks[chunk].shape[:-1], math.comb(n, 2)), dtype=np.float32)
        start = 0
        for lag in range(1, n):
            np.subtract(ranks[chunk, :, lag:], ranks[chunk, :, :-lag], out=signs[..., start : start + n - lag])
            start += n - lag
        # The differences are integers, so clipping is the sign function, and faster than np.sign.
        np.clip(signs, -1, 1, out=signs)
        concordance[chunk] = signs @ signs.swapaxes(-2, -1)
        del signs  # frees its memory before the next chunk is allocated
    return concordance


def _concordance_by_sorting(scores: FloatArray, untied: FloatArray) -> FloatArray:
    """Concordant minus discordant pairs of items [B, M, M] from scores [B, M, n] and untied pairs [B, M]."""
    from scipy import stats

    concordance = untied[:, :, None] * np.eye(untied.shape[1])
    for a, b in combinations(range(untied.shape[1]), 2):
        tau = np.array([stats.kendalltau(x, y).statistic for x, y in zip(scores[:, a], scores[:, b], strict=True)])
        # scipy does not return the integer, but its tau is that integer over this root.
        concordance[:, a, b] = concordance[:, b, a] = np.rint(tau * np.sqrt(untied[:, a] * untied[:, b]))
    return concordance


def _kendall_p_value(concordance: FloatArray, ties: npt.NDArray[np.intp]) -> FloatArray:
    """Two-sided p [B, M, M] from concordant minus discordant [B, M, M] and each item's tie group size [B, M, n]."""
    n = ties.shape[-1]
    tied = (ties - 1).sum(axis=-1) / 2
    triples = ((ties - 1) * (ties - 2)).sum(axis=-1, dtype=np.float64)
    spread = ((ties - 1) * (2 * ties + 5)).sum(axis=-1, dtype=np.float64)
    # Constant vectors and n = 2 divide 0 by 0; the caller sets the former to NaN, the exact table covers the latter.
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = (
            (n * (n - 1) * (2 * n + 5) - (spread[:, :, None] + spread[:, None, :])) / 18
            + 2 * (tied[:, :, None] * tied[:, None, :]) / (n * (n - 1))
            + (triples[:, :, None] * triples[:, None, :]) / (9 * n * (n - 1) * (n - 2))
        )
        p_value: FloatArray = 2 * special.ndtr(-np.abs(concordance / np.sqrt(variance)))
    fewest_swaps = (math.comb(n, 2) - np.abs(concordance)) / 2
    exact = (tied[:, :, None] + tied[:, None, :] == 0) & ((n <= LONGEST_EXACT_NULL) | (fewest_swaps <= 1))
    p_value[exact] = _exact_p_values(n)[fewest_swaps[exact].astype(np.intp)]
    return p_value


@cache
def _exact_p_values(n: int) -> FloatArray:
    """Two-sided p by the swaps between two orders of n items: [n(n-1)/2 + 1], or [2] beyond LONGEST_EXACT_NULL."""
    if n > LONGEST_EXACT_NULL:
        return np.array([2 / math.factorial(n), 2 / math.factorial(n - 1)])
    # Inserting item m into a random order of m - 1 items adds 0 to m - 1 swaps with equal probability.
    probability = np.ones(1)
    for m in range(2, n + 1):
        probability = np.convolve(probability, np.full(m, 1 / m))
    return np.minimum(1.0, 2 * np.cumsum(probability))
