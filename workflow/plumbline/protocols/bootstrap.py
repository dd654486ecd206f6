"""How sure a mean is."""

import numpy as np
import numpy.typing as npt

# The interval of two values would be from one to the other, which holds the mean in half of all cases.
FEWEST = 3
# Values that differ by less are the same: a mean of equal numbers may be off by its rounding.
SMALLEST_SPREAD = 1e-12


def mean_interval(
    values: npt.ArrayLike, confidence: float = 0.95, resamples: int = 9999, seed: int = 0
) -> tuple[float, float]:
    """The BCa bootstrap interval of the mean of independent values, such as one per seed.

    NaN for fewer than FEWEST values, and where a value is not finite; without width where all values are equal. Of few
    values it is too narrow: of normal ones, that of five holds the mean in 83 % of cases, that of three in 72 %.
    """
    sample = np.asarray(values, dtype=np.float64)
    if len(sample) < FEWEST or not np.isfinite(sample).all():
        return float("nan"), float("nan")
    if np.ptp(sample) < SMALLEST_SPREAD:
        return float(sample.min()), float(sample.max())
    from scipy.stats import bootstrap  # Only here: it takes longer to import than most tables take to make.

    found = bootstrap(
        (sample,),
        np.mean,
        confidence_level=confidence,
        n_resamples=resamples,
        method="BCa",
        rng=np.random.default_rng(seed),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def student_interval(values: npt.ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    """Student's interval of the mean of independent values, such as one per seed: of few normal ones, unlike the
    bootstrap's, it holds the mean as often as it says. NaN for fewer than FEWEST values."""
    sample = np.asarray(values, dtype=np.float64)
    if len(sample) < FEWEST or not np.isfinite(sample).all():
        return float("nan"), float("nan")
    from scipy.special import stdtrit

    reach = stdtrit(len(sample) - 1, (1 + confidence) / 2) * sample.std(ddof=1) / np.sqrt(len(sample))
    return float(sample.mean() - reach), float(sample.mean() + reach)
