"""The batched rank statistics against scipy, slow re-implementations and values computed by hand."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations, product

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats  # type: ignore[import-untyped, unused-ignore]

from plumbline.protocols.agreement import rank_statistics
from plumbline.protocols.agreement.rank_statistics import kendall_tau, pearson, spearman
from plumbline.protocols.agreement.top_k_statistics import (
    top_k_kendall_fagin,
    top_k_kendall_jain_wallace,
    top_k_kendall_neely,
)

FloatArray = npt.NDArray[np.float64]
Correlation = Callable[[npt.ArrayLike], tuple[FloatArray, FloatArray]]
Distance = Callable[[npt.ArrayLike, int], FloatArray]

TOLERANCE = 1e-10


def vector_pairs(n: int, rng: np.random.Generator) -> FloatArray:
    """Pairs [26, 2, n] from unrelated to nearly identical and from untied to almost constant."""
    pairs = []
    for _ in range(2):
        x, y, noise = rng.normal(size=(3, n))
        coarse = rng.integers(0, n, size=n).astype(float)
        sparse = np.where(rng.random(n) < 0.7, 0.0, x)
        binary = (rng.random(n) < 0.5).astype(float)
        swapped = np.sort(x)
        swapped[[0, 1]] = swapped[[1, 0]]
        spike = np.zeros(n)
        spike[rng.integers(n)] = 1.0
        pairs += [
            (x, y),
            (x, x + 0.3 * noise),
            (x, 2 * x + 1),
            (x, -x),
            (np.sort(x), swapped),
            (np.sort(x), -swapped),
            (x, coarse),
            (coarse, rng.permutation(coarse)),
            (np.round(x), np.round(x + 0.5 * noise)),
            (sparse, np.where(rng.random(n) < 0.7, 0.0, y)),
            (sparse, sparse**3),
            (binary, sparse),
            (spike, x),
        ]
    return np.array(pairs)


def assert_matches(correlation: Correlation, oracle: Callable[..., tuple[float, float]], scores: FloatArray) -> None:
    """Compare the off-diagonal results for pairs [B, 2, n] with one oracle call per pair."""
    value, p_value = correlation(scores)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.ConstantInputWarning)
        expected = np.array([tuple(oracle(x, y)) for x, y in scores])
    # scipy 1.14 has r = 0 and p = 1 instead of NaN for a constant vector of two scores.
    expected[(np.ptp(scores, axis=-1) == 0).any(axis=-1)] = np.nan
    assert value.shape == p_value.shape == (len(scores), 2, 2)
    np.testing.assert_allclose(value[:, 0, 1], expected[:, 0], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(p_value[:, 0, 1], expected[:, 1], rtol=0, atol=TOLERANCE)


def test_kendall_tau_equals_scipy_on_thousands_of_pairs() -> None:
    rng = np.random.default_rng(0)
    n_pairs = 0
    # Every short length, and some longer lengths for each of the algorithms.
    for n in (*range(2, 61), *range(61, 401, 17)):
        scores = vector_pairs(n, rng)
        assert_matches(kendall_tau, stats.kendalltau, scores)
        n_pairs += len(scores)
    assert n_pairs >= 2_000


def test_exact_p_values_equal_scipy_relatively() -> None:
    """An absolute tolerance would hide a wrong tail of the null distribution."""
    rng = np.random.default_rng(1)
    for n in (2, 3, 4, 9, 20, 32, 33, 34, 60):
        x = np.arange(n, dtype=float)
        disturbed = np.argsort(x + rng.normal(size=(20, n)) * rng.choice([0.3, 1, 5], size=(20, 1)), axis=-1)
        _, p_value = kendall_tau(np.stack([np.broadcast_to(x, (20, n)), disturbed], axis=1))
        expected = [stats.kendalltau(x, y).pvalue for y in disturbed]
        np.testing.assert_allclose(p_value[:, 1, 0], expected, rtol=1e-9)


def test_exact_null_distribution_by_hand() -> None:
    # Of the 6 orders of 3 items, 1, 2, 2, 1 are 0, 1, 2, 3 swaps away.
    tau, p_value = kendall_tau([[[1, 2, 3], [1, 2, 3], [2, 1, 3], [3, 2, 1]]])
    np.testing.assert_allclose(tau[0, 0], [1, 1, 1 / 3, -1], rtol=1e-15)
    np.testing.assert_allclose(p_value[0, 0], [1 / 3, 1 / 3, 1, 1 / 3], rtol=1e-15)


def test_long_vectors_equal_scipy() -> None:
    assert_matches(kendall_tau, stats.kendalltau, vector_pairs(700, np.random.default_rng(2)))


@pytest.mark.parametrize(
    ("n_vectors", "n", "not_taken"),
    [
        (2, 300, "_concordance_by_sorting"),
        (2, 301, "_concordance_by_signs"),
        (5, 600, "_concordance_by_sorting"),
        (5, 601, "_concordance_by_signs"),
    ],
)
def test_crossover_grows_with_the_root_of_vectors(
    monkeypatch: pytest.MonkeyPatch, n_vectors: int, n: int, not_taken: str
) -> None:
    monkeypatch.setattr(rank_statistics, not_taken, None)
    kendall_tau(np.random.default_rng(12).normal(size=(1, n_vectors, n)))


def test_sorting_and_sign_matrix_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    scores = np.concatenate([rng.normal(size=(5, 4, 50)), rng.integers(0, 6, size=(5, 4, 50))])
    scores[0, 0] = 1.0
    by_signs = kendall_tau(scores)
    monkeypatch.setattr(rank_statistics, "_concordance_by_signs", None)
    monkeypatch.setattr(rank_statistics, "SIGN_CROSSOVER", 1)
    by_sorting = kendall_tau(scores)
    np.testing.assert_array_equal(by_signs, by_sorting)


def test_all_pairs_of_several_long_vectors_equal_scipy() -> None:
    scores = np.round(np.random.default_rng(9).normal(size=(2, 3, 500)), 1)
    scores[0, 0] = np.random.default_rng(10).normal(size=500)
    expected = np.array([[[tuple(stats.kendalltau(x, y)) for y in vectors] for x in vectors] for vectors in scores])
    tau, p_value = kendall_tau(scores)
    np.testing.assert_allclose(tau, expected[..., 0], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(p_value, expected[..., 1], rtol=0, atol=TOLERANCE)


def test_vectors_over_the_memory_budget_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.random.default_rng(11).normal(size=(3, 2, 20))
    by_signs = kendall_tau(scores)
    monkeypatch.setattr(rank_statistics, "_concordance_by_signs", None)
    monkeypatch.setattr(rank_statistics, "MEMORY_BUDGET_BYTES", 4 * 2 * 190 - 1)
    np.testing.assert_array_equal(kendall_tau(scores), by_signs)


@pytest.mark.parametrize("budget", [2_000, 5_000, 20_000])
def test_chunking_does_not_change_results(monkeypatch: pytest.MonkeyPatch, budget: int) -> None:
    scores = np.random.default_rng(4).integers(0, 8, size=(23, 3, 17)).astype(float)

    def results() -> list[FloatArray]:
        top = (top_k_kendall_jain_wallace, top_k_kendall_fagin, top_k_kendall_neely)
        return [*kendall_tau(scores), *(statistic(scores, 5) for statistic in top)]

    whole = results()
    monkeypatch.setattr(rank_statistics, "MEMORY_BUDGET_BYTES", budget)
    n_chunks = len(list(rank_statistics.instance_chunks(23, 4 * 3 * 17 * 16 // 2)))
    assert n_chunks > 1
    for once, in_chunks in zip(whole, results(), strict=True):
        np.testing.assert_array_equal(once, in_chunks)


def test_chunks_cover_every_instance_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_statistics, "MEMORY_BUDGET_BYTES", 1_000)
    chunks = [range(23)[chunk] for chunk in rank_statistics.instance_chunks(23, 150)]
    assert [i for chunk in chunks for i in chunk] == list(range(23))
    assert max(len(chunk) for chunk in chunks) == 6


@pytest.mark.parametrize("n", [2, 3, 4, 5, 20, 33, 34, 150, 400])
@pytest.mark.parametrize(("correlation", "oracle"), [(spearman, stats.spearmanr), (pearson, stats.pearsonr)])
def test_spearman_and_pearson_equal_scipy(correlation: Correlation, oracle: Callable[..., object], n: int) -> None:
    scores = np.concatenate([vector_pairs(n, np.random.default_rng(seed)) for seed in range(4)])
    assert_matches(correlation, oracle, scores)  # type: ignore[arg-type]


def test_pearson_of_two_points_has_p_one() -> None:
    r, p_value = pearson([[[0.1, 0.3], [7.0, 9.5], [3.0, -1.0]]])
    np.testing.assert_array_equal(r[0], [[1, 1, -1], [1, 1, -1], [-1, -1, 1]])
    np.testing.assert_array_equal(p_value[0], np.ones((3, 3)))


@pytest.mark.parametrize("n", [2, 3, 20, 50, 700])
@pytest.mark.parametrize("correlation", [kendall_tau, spearman, pearson])
def test_constant_vectors_give_nan_without_warning(correlation: Correlation, n: int) -> None:
    scores = np.random.default_rng(5).normal(size=(2, 3, n))
    scores[0, 1] = 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, p_value = correlation(scores)
    undefined = np.zeros((2, 3, 3), dtype=bool)
    undefined[0, 1, :] = undefined[0, :, 1] = True
    np.testing.assert_array_equal(np.isnan(value), undefined)
    if not (correlation is spearman and n == 2):
        np.testing.assert_array_equal(np.isnan(p_value), undefined)


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("correlation", [kendall_tau, spearman, pearson])
def test_fewer_than_two_scores_give_nan(correlation: Correlation, n: int) -> None:
    for result in correlation(np.ones((2, 3, n))):
        assert result.shape == (2, 3, 3)
        assert np.isnan(result).all()


@pytest.mark.parametrize("correlation", [kendall_tau, spearman, pearson])
def test_correlations_of_many_vectors_are_symmetric(correlation: Correlation) -> None:
    scores = np.random.default_rng(6).integers(0, 9, size=(6, 5, 21)).astype(float)
    value, p_value = correlation(scores)
    for result in (value, p_value):
        np.testing.assert_allclose(result, result.swapaxes(1, 2), rtol=0, atol=1e-14)
    for a, b in combinations(range(5), 2):
        pair_value, pair_p_value = correlation(scores[:, [a, b]])
        np.testing.assert_allclose(value[:, a, b], pair_value[:, 0, 1], rtol=0, atol=TOLERANCE)
        np.testing.assert_allclose(p_value[:, a, b], pair_p_value[:, 0, 1], rtol=0, atol=TOLERANCE)


def test_extreme_magnitudes_keep_their_order() -> None:
    scores = np.array([[[-1.7e308, 5e-324, 0.0, 1.7e308], [1.0, 3.0, 2.0, 4.0]]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kendall_tau(scores)[0][0, 0, 1] == 1
        assert top_k_kendall_fagin(scores, 4)[0, 0, 1] == 0
        assert top_k_kendall_neely(scores, 4)[0, 0, 1] == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "statistic",
    [
        kendall_tau,
        spearman,
        pearson,
        lambda scores: top_k_kendall_jain_wallace(scores, 3),
        lambda scores: top_k_kendall_fagin(scores, 3),
        lambda scores: top_k_kendall_neely(scores, 3),
    ],
)
def test_non_finite_scores_raise(statistic: Callable[[FloatArray], object], bad: float) -> None:
    scores = np.random.default_rng(7).normal(size=(2, 2, 5))
    statistic(scores)
    scores[1, 1, 4] = bad
    with pytest.raises(ValueError, match="finite"):
        statistic(scores)


def test_wrong_shapes_and_list_sizes_raise() -> None:
    with pytest.raises(ValueError, match=r"not \[2, 5\]"):
        kendall_tau(np.ones((2, 5)))
    with pytest.raises(ValueError, match="k = 0 of 5"):
        top_k_kendall_fagin(np.ones((1, 2, 5)), 0)
    with pytest.raises(ValueError, match="k = 3 of 0"):
        top_k_kendall_jain_wallace(np.ones((1, 2, 0)), 3)
    with pytest.raises(ValueError, match="k = 0 of 5"):
        top_k_kendall_neely(np.ones((1, 2, 5)), 0)


def top_items(scores: FloatArray, k: int) -> set[int]:
    return set(sorted(range(len(scores)), key=lambda item: (-scores[item], item))[:k])


def slow_jain_wallace(a: FloatArray, b: FloatArray, k: int) -> float:
    in_a, in_b = top_items(a, k), top_items(b, k)
    shared = sorted(in_a & in_b)
    tau = stats.kendalltau(a[shared], b[shared]).statistic if len(shared) > 1 else np.nan
    cost = 0.0 if np.isnan(tau) else (1 - (tau / 2 + 0.5)) * len(shared) ** 2
    cost += sum(a[i] < a[j] for i, j in product(shared, in_a - in_b))
    cost += sum(b[i] < b[j] for i, j in product(shared, in_b - in_a))
    unshared = len(in_a) - len(shared)
    cost += unshared * (unshared - 1) / 2
    return float(cost / len(in_a | in_b) ** 2)


def slow_fagin(a: FloatArray, b: FloatArray, k: int) -> float:
    in_a, in_b = top_items(a, k), top_items(b, k)

    def order(scores: FloatArray, members: set[int], i: int, j: int) -> float | None:
        """1 where i is ahead of j, -1 where behind, 0 where tied, None where the list holds neither."""
        if i in members and j in members:
            return float(np.sign(scores[i] - scores[j]))
        if i in members or j in members:
            return 1.0 if i in members else -1.0
        return None

    cost = 0.0
    for i, j in combinations(sorted(in_a | in_b), 2):
        by_a, by_b = order(a, in_a, i, j), order(b, in_b, i, j)
        if by_a is None or by_b is None:
            cost += 0.5
        elif by_a * by_b < 0:
            cost += 1
        elif (by_a == 0) != (by_b == 0):
            cost += 0.5
    size = len(in_a)
    return cost / (size * size + 0.5 * size * (size - 1))


@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 5), (6, 6), (8, 1), (8, 3), (20, 10), (40, 10)])
@pytest.mark.parametrize(
    ("distance", "slow"), [(top_k_kendall_jain_wallace, slow_jain_wallace), (top_k_kendall_fagin, slow_fagin)]
)
def test_top_k_distances_equal_slow_versions(
    distance: Distance, slow: Callable[[FloatArray, FloatArray, int], float], n: int, k: int
) -> None:
    rng = np.random.default_rng(8)
    related = rng.normal(size=(12, 1, n)) + 0.7 * rng.normal(size=(12, 3, n))
    scores = np.concatenate([rng.normal(size=(12, 3, n)), related, np.round(related), np.maximum(related, 0)])
    result = distance(scores, k)
    expected = [[[slow(a, b, k) for b in vectors] for a in vectors] for vectors in scores]
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(result, result.swapaxes(1, 2))
    assert (np.diagonal(result, axis1=1, axis2=2) == 0).all()
    assert (result >= 0).all()
    assert (result <= 1).all()


@pytest.mark.parametrize(
    ("a", "b", "k", "jain_wallace", "fagin"),
    [
        pytest.param([4, 3, 2, 1], [9, 8, 7, 6], 3, 0, 0, id="identical"),
        # Fagin: 9 pairs of case 3 and 6 of case 4; the version of Jain & Wallace has 3 of 36.
        pytest.param([6, 5, 4, 3, 2, 1], [1, 2, 3, 4, 5, 6], 3, 3 / 36, 1, id="disjoint"),
        # Shared 1, 2 reversed; 0 ahead of both in A; 3 ahead of 1 in B; 0 and 3 are case 3.
        pytest.param([4, 3, 2, 1], [1, 2, 4, 3], 3, 7 / 16, 5 / 12, id="overlapping"),
        # Only the last items differ: nothing but case 3.
        pytest.param([5, 4, 3, 2, 1], [5, 4, 1, 3, 2], 3, 0, 1 / 12, id="last-item-replaced"),
        pytest.param([1, 2, 3], [3, 2, 1], 5, 1, 3 / 12, id="reversed-shorter-than-k"),
        pytest.param([3, 3, 1, 0], [3, 2, 1, 0], 2, 0, 0.5 / 5, id="tied-in-one-list"),
        pytest.param([2, 2, 0, 0], [2, 0, 1, 0], 2, 0, 1.5 / 5, id="shared-item-level-with-unshared"),
        pytest.param([2, 1, 1, 0], [4, 3, 0, 0], 2, 0, 0, id="border-tie-takes-lower-index"),
        pytest.param([2, 1, 1, 0], [4, 0, 3, 0], 2, 0, 1 / 5, id="border-tie-leaves-higher-index"),
    ],
)
def test_top_k_distances_by_hand(a: list[int], b: list[int], k: int, jain_wallace: float, fagin: float) -> None:
    assert top_k_kendall_jain_wallace([[a, b]], k)[0, 0, 1] == pytest.approx(jain_wallace, abs=1e-15)
    assert top_k_kendall_fagin([[a, b]], k)[0, 0, 1] == pytest.approx(fagin, abs=1e-15)


def slow_neely(a: FloatArray, b: FloatArray, k: int) -> float:
    """Pair by pair, with each vector's levels as a sorted list of its distinct scores."""

    def listed(scores: FloatArray) -> list[int]:
        highest = sorted(set(scores.tolist()), reverse=True)[:k]
        return [item for item, score in enumerate(scores.tolist()) if score in highest]

    pairs = {frozenset(pair) for pair in product(listed(a), listed(b)) if len(set(pair)) == 2}
    cost = 0.0
    for i, j in map(tuple, pairs):
        by_a, by_b = np.sign(a[i] - a[j]), np.sign(b[i] - b[j])
        if by_a * by_b == -1:
            cost += 1
        elif (by_a == 0) != (by_b == 0):
            cost += 0.5
    return 1 - 2 * cost / len(pairs) if pairs else 1.0


@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 5), (6, 6), (8, 1), (8, 3), (20, 5), (30, 10)])
def test_top_k_correlation_equals_the_slow_version(n: int, k: int) -> None:
    rng = np.random.default_rng(13)
    related = rng.normal(size=(8, 1, n)) + 0.7 * rng.normal(size=(8, 3, n))
    scores = np.concatenate([rng.normal(size=(8, 3, n)), related, np.round(related), np.maximum(related, 0)])
    result = top_k_kendall_neely(scores, k)
    expected = [[[slow_neely(a, b, k) for b in vectors] for a in vectors] for vectors in scores]
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(result, result.swapaxes(1, 2))
    assert (np.diagonal(result, axis1=1, axis2=2) == 1).all()


@pytest.mark.parametrize(
    ("a", "b", "k", "expected"),
    [
        pytest.param([1, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 2, 1], 3, -1, id="reversed"),
        pytest.param([1, 2, 3, 4, 5, 6, 7], [2, 4, 6, 8, 10, 12, 14], 1, 1, id="the-same-single-item"),
        # Three levels are everything: of 21 pairs 8 are opposite and 10 tied in one.
        pytest.param([1, 2, 3, 1, 1, 2, 2], [3, 2, 1, 2, 1, 2, 1], 3, 1 - 2 * (8 + 5) / 21, id="ties"),
        # Items 1, 2, 5 and 6 against 0, 1, 3 and 5: of 13 pairs 8 are opposite and 4 tied in one.
        pytest.param([1, 2, 3, 1, 1, 2, 2], [3, 2, 1, 2, 1, 2, 1], 2, 1 - 2 * (8 + 2) / 13, id="two-levels"),
        # Item 2 against item 0.
        pytest.param([1, 2, 3, 1, 1, 2, 2], [3, 2, 1, 2, 1, 2, 1], 1, -1, id="one-level"),
        # A constant vector has one level: all three pairs are tied in it alone.
        pytest.param([1, 1, 1], [3, 2, 1], 5, 0, id="constant"),
    ],
)
def test_top_k_correlation_by_hand(a: list[int], b: list[int], k: int, expected: float) -> None:
    assert top_k_kendall_neely([[a, b]], k)[0, 0, 1] == pytest.approx(expected, abs=1e-15)


def test_top_k_correlation_of_all_items_without_ties_is_kendalls_tau() -> None:
    scores = np.random.default_rng(14).normal(size=(4, 3, 15))
    np.testing.assert_allclose(top_k_kendall_neely(scores, 15), kendall_tau(scores)[0], rtol=0, atol=1e-12)
