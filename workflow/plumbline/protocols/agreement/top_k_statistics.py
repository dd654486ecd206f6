"""Rank agreement of the k most important items: the distances of Jain & Wallace and of Fagin, Neely's correlation.

Every function takes scores [B, M, n], as in `rank_statistics`, and k; it returns an array [B, M, M].
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plumbline.protocols.agreement.rank_statistics import FloatArray, finite_scores, instance_chunks
from plumbline.registry import metric

NEUTRAL_PENALTY = 0.5  # Fagin's p, the cost of two items whose order one of the lists leaves open


@metric(
    "top-k-jain-wallace",
    direction="lower",
    range=[0, 1],
    unit="distance",
    equation="Fagin's K^(1/2) on the top k without its case 3, over |A ∪ B|²; 0 is identical",
)
def top_k_kendall_jain_wallace(scores: npt.ArrayLike, k: int) -> FloatArray:
    """Top-k Kendall distance as coded by Jain & Wallace (2019), 0 for identical lists.

    It omits Fagin's case 3 (an item in only one list and an item in only the other cost nothing), so disjoint lists
    have (k - 1) / 8k. The shared items contribute (1 - tau-b) / 2 times their squared number, or 0 if tau-b is
    undefined; the sum is divided by the squared size of the union. Ties at the end of a list go to the lower index.
    If n <= k, the list holds all n items.
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

    0 for identical lists and 1 for disjoint ones; if n < 2k no two lists are disjoint and the distance is below 1 (for
    n <= k, the lists hold all n items and reversed ones have (n - 1) / (3n - 1)). Items tied in exactly one list cost
    1/2. Ties at the end of the top k go to the lower index, and the excluded item counts as ranked behind the list.
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

    Tied items share a level, and a list holds all items of its k highest levels, which may be more than k items. Each
    unordered pair of an item in one list and an item in the other costs 1 if the two vectors order it oppositely and
    1/2 if exactly one of them ties it. Two lists of the same single item have no pair, and the correlation is 1.
    """
    from scipy import stats

    values = _listable_scores(scores, k)
    n_instances, n_vectors, _ = values.shape
    level = stats.rankdata(-values, method="dense", axis=-1).astype(np.int32)
    listed = level <= k
    longest = int(listed.sum(axis=-1).max(initial=0))
    top = np.argsort(~listed, axis=-1, kind="stable")[..., :longest]
    member = np.take_along_axis(listed, top, axis=-1)
    correlation = np.empty((n_instances, n_vectors, n_vectors))
    # About three eight-byte arrays of all pairs of listed items exist at once.
    for chunk in instance_chunks(n_instances, 24 * n_vectors * longest**2):
        for a in range(n_vectors):
            first, second = (chunk, slice(a, a + 1)), (chunk, slice(a, None))
            items_a, items_b = top[first], top[second]
            paired = member[first][..., :, None] & member[second][..., None, :]
            paired &= items_a[..., :, None] != items_b[..., None, :]
            # A pair of items that are both in both lists occurs twice, once in each order.
            twice = np.take_along_axis(listed[second], items_a, axis=-1)[..., :, None]
            twice = twice & np.take_along_axis(listed[first], items_b, axis=-1)[..., None, :]
            weight = np.where(twice, 0.5, 1.0) * paired
            # Orders are -1, 0 or 1: opposite orders differ by 2, a tie and an order by 1.
            differing = np.abs(_order(level[first], items_a, items_b) - _order(level[second], items_a, items_b))
            penalty = (weight * differing).sum(axis=(-2, -1)) / 2
            pairs = np.maximum(1, weight.sum(axis=(-2, -1)))
            correlation[chunk, a, a:] = correlation[chunk, a:, a] = 1 - 2 * penalty / pairs
    return correlation


def _order(
    level: npt.NDArray[np.int32], items_a: npt.NDArray[np.intp], items_b: npt.NDArray[np.intp]
) -> npt.NDArray[np.int32]:
    """-1, 0 or 1 if the first item of a pair is above, level with or below the second: [..., W, W] from [..., W]."""
    a, b = (np.take_along_axis(level, items, axis=-1) for items in (items_a, items_b))
    return np.sign(a[..., :, None] - b[..., None, :])


def _listable_scores(scores: npt.ArrayLike, k: int) -> FloatArray:
    values = finite_scores(scores)
    n = values.shape[-1]
    if k < 1 or n < 1:
        raise ValueError(f"Top-k lists need k >= 1 and at least one score, not k = {k} of {n} scores.")
    return values


class _TopKLists(NamedTuple):
    """Counts [B, M, M] for the top-k lists of vectors a (second axis) and b (third axis)."""

    shared: FloatArray  # items in both lists
    unshared: FloatArray  # items only in a's list, the same number as only in b's
    concordance: FloatArray  # pairs of shared items in the same order minus those in opposite order
    untied: FloatArray  # pairs of shared items that a does not tie
    untied_in_both: FloatArray  # pairs of shared items that neither a nor b ties
    overtaken: FloatArray  # pairs of a shared item and an item only in a's list that a scores higher
    level: FloatArray  # pairs of a shared item and an item only in a's list that a scores the same


def _compare_top_k(scores: npt.ArrayLike, k: int) -> _TopKLists:
    values = _listable_scores(scores, k)
    n_instances, n_vectors, n = values.shape
    top = np.argsort(-values, axis=-1, kind="stable")[..., :k]
    listed = np.zeros(values.shape, dtype=bool)
    np.put_along_axis(listed, top, True, axis=-1)
    counts = _TopKLists(*np.empty((len(_TopKLists._fields), n_instances, n_vectors, n_vectors)))
    # About eight one-byte arrays of all pairs of listed items exist at once.
    for chunk in instance_chunks(n_instances, 8 * n_vectors * min(k, n) ** 2):
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
