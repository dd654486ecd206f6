"""Confidence intervals of means."""

import numpy as np
import numpy.typing as npt

# The interval of two values would span just these two, and cover the mean in half of all cases.
FEWEST = 3
# Values that differ by less count as equal: the mean of equal numbers has a rounding error.
SMALLEST_SPREAD = 1e-12


def mean_interval(
    values: npt.ArrayLike, confidence: float = 0.95, resamples: int = 9999, seed: int = 0
) -> tuple[float, float]:
    """The BCa bootstrap interval of the mean of independent values, such as one per seed.

    NaN for fewer than FEWEST values or any that is not finite; zero width if all values are equal. With few values it
    is too narrow: for normal ones its coverage is 83 % with five values and 72 % with three.
    """
    sample = np.asarray(values, dtype=np.float64)
    if len(sample) < FEWEST or not np.isfinite(sample).all():
        return float("nan"), float("nan")
    if np.ptp(sample) < SMALLEST_SPREAD:
        return float(sample.min()), float(sample.max())
    from scipy.stats import bootstrap  # Imported late: it takes longer than most tables.

    interval = bootstrap(
        (sample,),
        np.mean,
        confidence_level=confidence,
        n_resamples=resamples,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def student_interval(values: npt.ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    """Student's t interval of the mean of independent values, such as one per seed. For few normal values it has its
    nominal coverage, unlike the bootstrap's. NaN for fewer than FEWEST values."""
    sample = np.asarray(values, dtype=np.float64)
    if len(sample) < FEWEST or not np.isfinite(sample).all():
        return float("nan"), float("nan")
    from scipy.special import stdtrit

    half_width = stdtrit(len(sample) - 1, (1 + confidence) / 2) * sample.std(ddof=1) / np.sqrt(len(sample))
    return float(sample.mean() - half_width), float(sample.mean() + half_width)
