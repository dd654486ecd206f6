"""Intervals of means by resampling."""

import warnings

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from plumbline.protocols.bootstrap import mean_interval

FIVE = [0.1, 0.3, 0.25, 0.6, 0.5]


def plain_bca(values: np.ndarray, confidence: float, resamples: int, seed: int) -> list[float]:
    """Efron's BCa interval of the mean, step by step."""
    n = len(values)
    drawn = np.random.default_rng(seed).integers(0, n, (resamples, n))
    means = np.array([values[row].mean() for row in drawn])
    below = (np.sum(means < values.mean()) + np.sum(means <= values.mean())) / (2 * resamples)
    bias = ndtri(below)
    without = np.array([np.delete(values, i).mean() for i in range(n)])
    skew = without.mean() - without
    acceleration = np.sum(skew**3) / (6 * np.sum(skew**2) ** 1.5)
    ends = []
    for tail in ((1 - confidence) / 2, (1 + confidence) / 2):
        shifted = bias + ndtri(tail)
        ends.append(float(np.quantile(means, ndtr(bias + shifted / (1 - acceleration * shifted)))))
    return ends


@pytest.mark.parametrize("confidence", [0.95, 0.8])
@pytest.mark.parametrize("size", [3, 5, 9])
def test_the_interval_is_efrons_bca(size, confidence):
    for seed in range(5):
        values = np.random.default_rng([size, seed]).gamma(1.0, size=size)
        interval = mean_interval(values, confidence, resamples=999, seed=3)
        assert interval == pytest.approx(plain_bca(values, confidence, 999, 3), abs=1e-9)


def test_the_interval_of_five_known_values():
    """9999 resamples of these five with NumPy's generator 0 give these ends, each a mean of five of the values."""
    assert mean_interval(FIVE) == pytest.approx((0.2, 0.51))
    assert mean_interval(FIVE) == mean_interval(list(FIVE)) and mean_interval(FIVE) != mean_interval(FIVE, 0.5)


def test_it_is_equivariant_to_shift_and_scale():
    low, high = mean_interval(FIVE)
    assert mean_interval(np.multiply(FIVE, 2) + 1) == pytest.approx((2 * low + 1, 2 * high + 1))


def test_equal_values_have_zero_width_and_too_few_are_nan():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mean_interval([0.3] * 5) == (0.3, 0.3)
        assert mean_interval([0.3, 0.1 + 0.2, 0.3]) == pytest.approx((0.3, 0.3), abs=1e-15)
        assert np.isnan(mean_interval([0.3])).all() and np.isnan(mean_interval([])).all()
        assert np.isnan(mean_interval([0.1, np.nan, 0.4])).all() and np.isnan(mean_interval([0.1, np.inf])).all()
        assert np.isnan(mean_interval([0.0, 1.0])).all(), "two values are too few"
        assert mean_interval([1.0, 1.0, 1.0, 1.0, 0.9])[1] == 1
