"""Soft erasure keeps equally much of a text whatever the measure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.protocols.erasure.soft import keep_probabilities, rescaled

DRAWN = {
    "uniform": lambda random, n: random.random(n),
    "exponential": lambda random, n: random.exponential(size=n),
    "log-normal": lambda random, n: random.lognormal(0, 2, n),
    "tied": lambda random, n: random.integers(0, 3, n).astype(float),
    "equal": lambda random, n: np.full(n, 0.3),
    "signed": lambda random, n: random.normal(size=n),
    "undefined": lambda random, n: np.where(random.random(n) < 0.3, np.nan, random.random(n)),
}
RISING = [np.exp, np.arctan, lambda x: 3 * x - 7, lambda x: np.sign(x) * np.sqrt(np.abs(x))]


def test_min_max_by_hand():
    assert rescaled(np.array([2.0, 4.0, 3.0]))[1].tolist() == [0.0, 1.0, 0.5]
    assert rescaled(np.array([2.0, 4.0, 3.0]))[0].tolist() == [1.0, 0.0, 0.5]
    assert rescaled(np.array([-1.0, np.nan, 1.0]))[1].tolist() == [0.0, 0.0, 1.0]
    assert rescaled(np.array([7.0, 7.0]))[1].tolist() == [0.5, 0.5]
    assert rescaled(np.array([np.nan, np.nan]))[1].tolist() == [0.5, 0.5]
    assert rescaled(np.array([]))[1].tolist() == []


def test_equal_retention_by_hand():
    # With half retained the exponent is 1, and the probabilities are the midranks.
    without, alone = keep_probabilities(np.array([5.0, -1.0, 5.0, np.nan]), 0.5)
    np.testing.assert_allclose(alone, [0.75, 0.375, 0.75, 0.125], atol=1e-9)
    np.testing.assert_allclose(without, [0.25, 0.625, 0.25, 0.875], atol=1e-9)
    # (1/4)² + (3/4)² = 2 · 0.3125
    np.testing.assert_allclose(keep_probabilities(np.array([0.0, 1.0]), 0.3125)[1], [0.0625, 0.5625], atol=1e-9)
    assert [part.tolist() for part in keep_probabilities(np.array([]), 0.5)] == [[], []]


@given(st.sampled_from(sorted(DRAWN)), st.integers(1, 60), st.floats(0.001, 0.999), st.integers(0, 2**32 - 1))
def test_every_measure_keeps_equally_much(kind, words, retention, seed):
    scores = DRAWN[kind](np.random.default_rng(seed), words)
    for keep in keep_probabilities(scores, retention):
        assert keep.mean() == pytest.approx(retention, abs=1e-9)
        # What the model is given is in single precision.
        assert keep.astype(np.float32).astype(np.float64).mean() == pytest.approx(retention, abs=1e-6)
        assert (keep >= 0).all() and (keep < 1).all()


@given(
    st.sampled_from(sorted(DRAWN)),
    st.integers(1, 60),
    st.sampled_from([0.1, 0.5, 0.8]),
    st.sampled_from(range(len(RISING))),
    st.integers(0, 2**32 - 1),
)
def test_rising_functions_of_scores_change_nothing(kind, words, retention, rising, seed):
    scores = DRAWN[kind](np.random.default_rng(seed), words)
    before, after = (keep_probabilities(row, retention) for row in (scores, RISING[rising](scores)))
    np.testing.assert_array_equal(before, after)
    # Important words are kept more by sufficiency and less by comprehensiveness.
    known = np.flatnonzero(~np.isnan(scores))
    for keep, sign in zip(before, (-1, 1), strict=True):
        steps = np.diff(sign * keep[known][np.argsort(scores[known])])
        assert (steps >= 0).all()


@pytest.mark.parametrize(("kind", "least", "most"), [("uniform", 0.49, 0.51), ("exponential", 0.1, 0.4)])
def test_min_max_keeps_more_of_flat_measures(kind, least, most):
    random = np.random.default_rng(0)
    kept = [rescaled(DRAWN[kind](random, 20))[1].mean() for _ in range(2000)]
    assert least < np.mean(kept) < most
