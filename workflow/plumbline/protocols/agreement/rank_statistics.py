"""Agreement between importance vectors: Kendall's tau-b, Spearman, Pearson, and three that look at the top k.

Every function takes scores [B, M, n]: B instances of one length n with M importance vectors each. It compares all
pairs of the M vectors within an instance and returns arrays [B, M, M].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special  # `stats` is imported where it is used: that takes longer than most of these functions.

from plumbline.registry import metric

FloatArray = npt.NDArray[np.float64]

# Bounds the pairwise comparisons held at once, save that top-k lists take at least one instance.
MEMORY_BUDGET_BYTES = 64 * 2**20
# For two vectors scipy's n log n sorting beats n^2 / 2 signs per vector beyond about this length (measured).
# It sorts for each pair of vectors, so the squared length where both take the same time grows with M - 1.
SIGN_CROSSOVER = 300
LONGEST_EXACT_NULL = 33  # beyond it scipy's method="auto" takes the normal approximation even without ties
NEUTRAL_PENALTY = 0.5  # Fagin's p, the cost of two items whose order one of the lists does not tell


@metric(
    "kendall",
    direction="higher",
    range=[-1, 1],
    unit="correlation",
    equation="(C - D) / √((C + D + T_a)(C + D + T_b))",
)
def kendall_tau(scores: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Kendall's tau-b and its two-sided p value, as `scipy.stats.kendalltau` with default arguments.

    scores: [B, M, n]. Returns tau [B, M, M] and p [B, M, M]; NaN for constant vectors and for n < 2.
    """
    values = _as_finite_scores(scores)
    n_vectors, n = values.shape[1:]
    if n < 2:
        return _undefined(values)
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    opens_group = np.ones(values.shape, dtype=bool)
    opens_group[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    # One cumulative sum numbers the tie groups of all vectors, because every vector opens a group.
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

    scores: [B, M, n]. Returns rho [B, M, M] and p [B, M, M]; NaN for constant vectors and n < 2, p also at n = 2.
    """
    from scipy import stats

    values = _as_finite_scores(scores)
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

    scores: [B, M, n]. Returns r [B, M, M] and p [B, M, M]; NaN for constant vectors and n < 2. p is 1 at n = 2.
    """
    from scipy import stats

    values = _as_finite_scores(scores)
    if values.shape[-1] < 2:
        return _undefined(values)
    # NaN vectors give the NaN results of constant ones without scipy's warning for each call.
    varying = np.where((values == values[..., :1]).all(axis=-1, keepdims=True), np.nan, values)
    # scipy's own arithmetic, because at n = 3 one rounding error of r near 1 moves p by 1e-8.
    result = stats.pearsonr(varying[:, :, None, :], varying[:, None, :, :], axis=-1)
    return result.statistic, np.where(np.isnan(result.statistic), np.nan, result.pvalue)


@metric(
    "top-k-jain-wallace",
    direction="lower",
    range=[0, 1],
    unit="distance",
    equation="Fagin's K^(1/2) on the top k without its case 3, over |A ∪ B|²; 0 is identical",
)
def top_k_kendall_jain_wallace(scores: npt.ArrayLike, k: int) -> FloatArray:
    """Top-k Kendall distance as coded by Jain & Wallace (2019), 0 for identical lists.

    It omits Fagin's case 3 (an item of only one list and an item of only the other cost nothing), so disjoint lists
    have (k - 1) / 8k. The shared items enter as (1 - tau-b) / 2 times their squared number, or 0 where tau-b is
    undefined; the sum is divided by the squared size of the union. Border ties go to the lower index.

    scores: [B, M, n]; all n items form the list where n <= k. Returns distances [B, M, M].
    """
    lists = _compare_top_k(scores, k)
    with np.errstate(invalid="ignore"):
        tau = lists.concordance / np.sqrt(lists.untied * lists.untied.swapaxes(-2, -1))
    reordered = np.where(np.isnan(tau), 0.0, (1 - tau) / 2 * lists.shared**2)
    overtaken = lists.overtaken + lists.overtaken.swapaxes(-2, -1)
    unknown = NEUTRAL_PENALTY * lists.unshared * (lists.unshared - 1)
    return (reordered + overtaken + unknown) / (lists.shared + 2 * lists.unshared) ** 2


@metric(
    "top-k-fagin",
    direction="lower",
    range=[0, 1],
    unit="distance",
    equation="K^(1/2)(top k of a, top k of b) / (k² + k(k - 1)/2); 0 is identical, 1 disjoint",
)
def top_k_kendall_fagin(scores: npt.ArrayLike, k: int) -> FloatArray:
    """Top-k Kendall distance K^(1/2) of Fagin, Kumar & Sivakumar (2003), divided by its value for disjoint lists.

    0 for identical lists and 1 for disjoint ones; where n < 2k no two lists are disjoint and 1 is out of reach (for
    n <= k, reversed lists have (n - 1) / (3n - 1)). Items tied in exactly one list cost 1/2. Ties at the border of
    the top k go to the lower index, and the item left out then counts as ranked behind the list.

    scores: [B, M, n]; all n items form the list where n <= k. Returns distances [B, M, M].
    """
    lists = _compare_top_k(scores, k)
    tied_in_one = lists.untied + lists.untied.swapaxes(-2, -1) - 2 * lists.untied_in_both
    case_1 = (lists.untied_in_both - lists.concordance) / 2 + NEUTRAL_PENALTY * tied_in_one
    case_2 = lists.overtaken + NEUTRAL_PENALTY * lists.level
    case_3 = lists.unshared**2
    case_4 = NEUTRAL_PENALTY * lists.unshared * (lists.unshared - 1)
    size = lists.shared + lists.unshared
    disjoint = size**2 + NEUTRAL_PENALTY * size * (size - 1)
    return (case_1 + case_2 + case_2.swapaxes(-2, -1) + case_3 + case_4) / disjoint


@metric(
    "top-k-neely",
    direction="higher",
    range=[-1, 1],
    unit="correlation",
    equation="1 - 2 K^(1/2) / |P| over the pairs P of an item of a's k highest levels and one of b's; 1 is identical",
)
def top_k_kendall_neely(scores: npt.ArrayLike, k: int) -> FloatArray:
    """Top-k Kendall correlation as coded by Neely et al. (2022), 1 for identical lists and -1 for reversed ones.

    Tied items share a level, and a list holds all items of its k highest levels, so that it may have more than k. Each
    unordered pair of an item of one list and an item of the other costs 1 if the two vectors order it oppositely and
    1/2 if exactly one of them ties it. Lists of the same single item make no pair, and have 1.

    scores: [B, M, n]. Returns correlations [B, M, M].
    """
    from scipy import stats

    values = _as_finite_scores(scores)
    _check_top_k(values, k)
    n_instances, n_vectors, _ = values.shape
    level = stats.rankdata(-values, method="dense", axis=-1).astype(np.int32)
    listed = level <= k
    longest = int(listed.sum(axis=-1).max(initial=0))
    top = np.argsort(~listed, axis=-1, kind="stable")[..., :longest]
    member = np.take_along_axis(listed, top, axis=-1)
    correlation = np.empty((n_instances, n_vectors, n_vectors))
    # About three eight-byte arrays of all pairs of listed items live at once.
    for chunk in _instance_chunks(n_instances, 24 * n_vectors * longest**2):
        for a in range(n_vectors):
            one, others = (chunk, slice(a, a + 1)), (chunk, slice(a, None))
            mine, theirs = top[one], top[others]
            paired = member[one][..., :, None] & member[others][..., None, :]
            paired &= mine[..., :, None] != theirs[..., None, :]
            # Two items that are in both lists meet twice, once in each place.
            twice = np.take_along_axis(listed[others], mine, axis=-1)[..., :, None]
            twice = twice & np.take_along_axis(listed[one], theirs, axis=-1)[..., None, :]
            weight = np.where(twice, 0.5, 1.0) * paired
            # Orders are -1, 0 or 1: opposite ones differ by 2, and a tie from an order by 1.
            differing = np.abs(_order(level[one], mine, theirs) - _order(level[others], mine, theirs))
            penalty = (weight * differing).sum(axis=(-2, -1)) / 2
            found = 1 - 2 * penalty / np.maximum(1, weight.sum(axis=(-2, -1)))
            correlation[chunk, a, a:] = correlation[chunk, a:, a] = found
    return correlation


def _order(
    level: npt.NDArray[np.int32], ones: npt.NDArray[np.intp], others: npt.NDArray[np.intp]
) -> npt.NDArray[np.int32]:
    """-1, 0 or 1 as each of these items [..., W] is above, level with or below each of the others: [..., W, W]."""
    below, above = (np.take_along_axis(level, items, axis=-1) for items in (ones, others))
    return np.sign(below[..., :, None] - above[..., None, :])


def _as_finite_scores(scores: npt.ArrayLike) -> FloatArray:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 3:
        raise ValueError(f"Scores must have the shape [instances, vectors, length], not {list(values.shape)}.")
    if not np.isfinite(values).all():
        raise ValueError("Scores must be finite, but some are NaN or infinite.")
    return values


def _check_top_k(scores: FloatArray, k: int) -> None:
    n = scores.shape[-1]
    if k < 1 or n < 1:
        raise ValueError(f"Top-k lists need k >= 1 and at least one score, not k = {k} of {n} scores.")


def _undefined(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    nan = np.full((*scores.shape[:2], scores.shape[1]), np.nan)
    return nan, nan.copy()


def _instance_chunks(n_instances: int, bytes_per_instance: int) -> Iterator[slice]:
    step = max(1, MEMORY_BUDGET_BYTES // max(1, bytes_per_instance))
    return (slice(start, start + step) for start in range(0, n_instances, step))


def _concordance_by_signs(ranks: npt.NDArray[np.float32], bytes_per_instance: int) -> FloatArray:
    """Concordant minus discordant pairs of items [B, M, M] from ranks [B, M, n] that are whole numbers."""
    n_instances, n_vectors, n = ranks.shape
    concordance = np.empty((n_instances, n_vectors, n_vectors))
    for chunk in _instance_chunks(n_instances, bytes_per_instance):
        # float32 counts exactly up to 2^24 pairs of items, more than the memory budget admits.
        signs = np.empty((*ranks[chunk].shape[:-1], math.comb(n, 2)), dtype=np.float32)
        start = 0
        for lag in range(1, n):
            np.subtract(ranks[chunk, :, lag:], ranks[chunk, :, :-lag], out=signs[..., start : start + n - lag])
            start += n - lag
        # The differences are integers, so clipping is the sign function, and faster than np.sign.
        np.clip(signs, -1, 1, out=signs)
        concordance[chunk] = signs @ signs.swapaxes(-2, -1)
        del signs  # or the next chunk would come on top of it
    return concordance


def _concordance_by_sorting(scores: FloatArray, untied: FloatArray) -> FloatArray:
    """Concordant minus discordant pairs of items [B, M, M] from scores [B, M, n] and untied pairs [B, M]."""
    from scipy import stats

    concordance = untied[:, :, None] * np.eye(untied.shape[1])
    for a, b in combinations(range(untied.shape[1]), 2):
        tau = np.array([stats.kendalltau(x, y).statistic for x, y in zip(scores[:, a], scores[:, b], strict=True)])
        # scipy keeps the integer to itself, but its tau is that integer over this root.
        concordance[:, a, b] = concordance[:, b, a] = np.rint(tau * np.sqrt(untied[:, a] * untied[:, b]))
    return concordance


def _kendall_p_value(concordance: FloatArray, ties: npt.NDArray[np.intp]) -> FloatArray:
    """Two-sided p [B, M, M] from concordant minus discordant [B, M, M] and each item's tie group size [B, M, n]."""
    n = ties.shape[-1]
    tied = (ties - 1).sum(axis=-1) / 2
    triples = ((ties - 1) * (ties - 2)).sum(axis=-1, dtype=np.float64)
    spread = ((ties - 1) * (2 * ties + 5)).sum(axis=-1, dtype=np.float64)
    # Constant vectors and n = 2 divide 0 by 0; the caller makes the former NaN, the table below covers the latter.
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
    # Inserting item m into a random order of m - 1 items adds 0 to m - 1 swaps, all equally likely.
    probability = np.ones(1)
    for m in range(2, n + 1):
        probability = np.convolve(probability, np.full(m, 1 / m))
    return np.minimum(1.0, 2 * np.cumsum(probability))


class _TopKLists(NamedTuple):
    """Counts [B, M, M] for the lists of vectors a (second axis) and b (third axis)."""

    shared: FloatArray  # items in both lists
    unshared: FloatArray  # items only in a's list, as many as only in b's
    concordance: FloatArray  # pairs of shared items in the same order minus those in opposite order
    untied: FloatArray  # pairs of shared items that a does not tie
    untied_in_both: FloatArray  # pairs of shared items that neither a nor b ties
    overtaken: FloatArray  # pairs of a shared item and an item only in a's list that a scores higher
    level: FloatArray  # pairs of a shared item and an item only in a's list that a scores the same


def _compare_top_k(scores: npt.ArrayLike, k: int) -> _TopKLists:
    values = _as_finite_scores(scores)
    _check_top_k(values, k)
    n_instances, n_vectors, n = values.shape
    top = np.argsort(-values, axis=-1, kind="stable")[..., :k]
    listed = np.zeros(values.shape, dtype=bool)
    np.put_along_axis(listed, top, True, axis=-1)
    counts = _TopKLists(*np.empty((len(_TopKLists._fields), n_instances, n_vectors, n_vectors)))
    # About eight one-byte arrays of all pairs of listed items live at once.
    for chunk in _instance_chunks(n_instances, 8 * n_vectors * min(k, n) ** 2):
        for a in range(n_vectors):
            items = top[chunk, a, None, :]
            shared = np.take_along_axis(listed[chunk], items, axis=-1)
            listed_scores = np.take_along_axis(values[chunk], items, axis=-1)
            ahead = (listed_scores[..., :, None] > listed_scores[..., None, :]).astype(np.int8)
            order = ahead - ahead.swapaxes(-2, -1)
            order_in_a = order[:, a, None]
            both_shared = shared[..., :, None] & shared[..., None, :]
            one_shared = shared[..., :, None] & ~shared[..., None, :]
            agreement = order * order_in_a * both_shared
            counts.shared[chunk, a] = shared.sum(axis=-1)
            counts.unshared[chunk, a] = (~shared).sum(axis=-1)
            # These matrices hold each pair of shared items twice, but each mixed pair once.
            counts.concordance[chunk, a] = agreement.sum(axis=(-2, -1)) / 2
            counts.untied[chunk, a] = (both_shared & (order_in_a != 0)).sum(axis=(-2, -1)) / 2
            counts.untied_in_both[chunk, a] = (agreement != 0).sum(axis=(-2, -1)) / 2
            counts.overtaken[chunk, a] = (one_shared & (order_in_a < 0)).sum(axis=(-2, -1))
            counts.level[chunk, a] = (one_shared & (order_in_a == 0)).sum(axis=(-2, -1))
    return counts
