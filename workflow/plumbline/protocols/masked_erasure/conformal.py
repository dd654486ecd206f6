"""Conformal p-values: how typical the representation of a text is of reference texts.

Empirical p-values of each feature are combined by Simes' method, as in Haroush et al. 2022 and Madsen et al. 2024. A
second part of the reference calibrates the combination, so that it is a p-value however features depend on each other.
"""

import numpy as np
import numpy.typing as npt

from plumbline.registry import metric

FloatArray = npt.NDArray[np.float64]
LEVEL = 0.05
# The weight of Fisher's combination, which only orders texts that Simes' method, by ranks, finds equal.
TIES = 1e-9


def two_sided(features: FloatArray, reference: FloatArray) -> FloatArray:
    """Two-sided empirical p-values [N, H] of features [N, H] among those of the reference [M, H], sorted by column."""
    count = len(reference)
    p_values = np.empty(features.shape)
    for column, (values, known) in enumerate(zip(features.T, reference.T, strict=True)):
        below, above = np.searchsorted(known, values, "right"), count - np.searchsorted(known, values, "left")
        p_values[:, column] = np.minimum(1, 2 * (1 + np.minimum(below, above)) / (count + 1))
    return p_values


def simes(p_values: FloatArray) -> FloatArray:
    """Simes' combination [N] of p-values [N, H]: the minimum of p_(i) H / i over the sorted ones."""
    count = p_values.shape[1]
    return (np.sort(p_values, axis=1) * count / np.arange(1, count + 1)).min(axis=1)


def typicality(features: FloatArray, reference: FloatArray) -> FloatArray:
    """How typical the features [N, H] of each text are of the reference [M, H]: the logarithm of Simes' p-value."""
    p_values = two_sided(features, reference)
    return np.log(simes(p_values)) + TIES * np.log(p_values).mean(axis=1)


class Reference:
    """The representations [M, H] of reference texts: a random half gives the distribution of each feature, the other
    half that of their combination."""

    def __init__(self, features: FloatArray, random: np.random.Generator) -> None:
        order = random.permutation(len(features))
        half = len(order) // 2
        self._known = np.sort(features[order[:half]], axis=0)
        self._calibration = np.sort(typicality(features[order[half:]], self._known))

    @property
    def suffices(self) -> bool:
        """Whether there are enough texts for a p-value below LEVEL."""
        return 1 / (len(self._calibration) + 1) < LEVEL

    def p_values(self, features: FloatArray) -> FloatArray:
        """The p-value [N] of each text: at most a share u of texts like those of the reference has one of u or less.

        NaN where `suffices` is false.
        """
        if not self.suffices:
            return np.full(len(features), np.nan)
        smaller = np.searchsorted(self._calibration, typicality(features, self._known), "right")
        return (1 + smaller) / (len(self._calibration) + 1)


@metric("out_of_distribution", direction="lower", range=[0, 1], unit="share", equation="(1/N) Σ [p_i < 0.05]")
def out_of_distribution(p_values: FloatArray) -> float:
    """Share of texts with a p-value below 0.05; 0.05 is expected of texts like those of the reference. NaN if a p-value
    is undefined."""
    return float(np.mean(p_values < LEVEL)) if not np.isnan(p_values).any() else float("nan")
