"""Hooker et al.'s synthetic check: four of sixteen features tell the class, and removal must find them (2019, Fig. 3).

All features are sums of the same three numbers of a sample, so any three of them tell the class as long as one is among
the four. Importances of a model of all features therefore cannot tell which ones will still be told by others.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

from plumbline.protocols.roar.schemas import SYNTHETIC_ROAR
from plumbline.registry import table
from plumbline.store import TableSchema
from plumbline.tables.sources import Sources

FEATURES, INFORMATIVE = 16, 4
# Directions in which features spread by less than this share of the widest one are rounding.
NARROWEST = 1e-6
# Classes that can be told apart have no best weights, only a best direction, along which the gradient vanishes.
FLATTEST, MOST_STEPS = 1e-5, 50
# Added to the curvature, which vanishes too; it shortens steps and moves no optimum.
DAMPING = 1e-7
MANY = 10_000


class Samples(NamedTuple):
    """Features [N, 16] and whether the class is the positive one [N]."""

    features: np.ndarray
    labels: np.ndarray


class Regression(NamedTuple):
    """A logistic regression: one coefficient per feature, and the intercept."""

    coefficients: np.ndarray
    intercept: float

    def accuracy(self, samples: Samples) -> float:
        """Share of the samples whose class is predicted."""
        return float(((samples.features @ self.coefficients + self.intercept > 0) == samples.labels).mean())


# Which feature to remove next, by the latest model and what is removed already.
Choice = Callable[[Regression, list[int]], int]


def draw_samples(seed: int, *sizes: int) -> list[Samples]:
    """Sets of samples of one problem: x = a z / 10 + d η + ε / 10 and y = [z > 0], with ε shared by the features."""
    generator = np.random.default_rng(seed)
    a = np.where(np.arange(FEATURES) < INFORMATIVE, generator.standard_normal(FEATURES), 0.0)
    d = generator.standard_normal(FEATURES)
    mixed = np.stack([a / 10, d, np.full(FEATURES, 0.1)])
    causes = [generator.standard_normal((size, len(mixed))) for size in sizes]
    return [Samples(cause @ mixed, cause[:, 0] > 0) for cause in causes]


def fit_regression(samples: Samples) -> Regression:
    """Logistic regression without penalty by Newton's method; of all weights with its outputs, the smallest ones.

    It works in the directions in which the features spread, because features that depend on each other, or are
    removed, would leave the normal equations without a single solution.
    """
    spread, directions = np.linalg.eigh(samples.features.T @ samples.features / len(samples.features))
    kept = spread > max(spread[-1], np.finfo(float).tiny) * NARROWEST**2
    whiten = directions[:, kept] / np.sqrt(spread[kept])
    inputs = np.column_stack([samples.features @ whiten, np.ones(len(samples.features))])
    weights = np.zeros(inputs.shape[1])
    # Of many samples, a part leads most of the way.
    for every in (100, 10, 1) if len(inputs) > MANY else (1,):
        weights = _newton(inputs[::every], samples.labels[::every], weights)
    return Regression(whiten @ weights[:-1], float(weights[-1]))


def _newton(inputs: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weights of a logistic regression without penalty, from where they begin."""
    for _ in range(MOST_STEPS):
        probabilities = expit(inputs @ weights)
        gradient = inputs.T @ (probabilities - labels) / len(inputs)
        if np.abs(gradient).max() < FLATTEST:
            break
        curvature = (inputs.T * (probabilities * (1 - probabilities))) @ inputs / len(inputs)
        weights = weights - np.linalg.solve(curvature + DAMPING * np.eye(len(weights)), gradient)
    return weights


def strongest(model: Regression, removed: list[int]) -> int:
    """The feature with the largest coefficient, of those that are not removed."""
    importances = np.abs(model.coefficients)
    importances[removed] = -np.inf
    return int(importances.argmax())


def fixed_order(order: Sequence[int]) -> Choice:
    """Take the features in an order that no model changes."""
    return lambda model, removed: order[len(removed)]


class Removal:
    """Models fitted without some of the features, each set of features once."""

    def __init__(self, train: Samples, test: Samples) -> None:
        self._train, self._test = train, test
        self._fitted: dict[frozenset[int], tuple[Regression, float]] = {}

    def fitted(self, removed: Sequence[int]) -> tuple[Regression, float]:
        """The model and its test accuracy when features are removed, which is to say 0 in both sets."""
        key = frozenset(removed)
        if key not in self._fitted:
            kept = np.array([feature not in key for feature in range(FEATURES)], dtype=float)
            model = fit_regression(Samples(self._train.features * kept, self._train.labels))
            self._fitted[key] = model, model.accuracy(Samples(self._test.features * kept, self._test.labels))
        return self._fitted[key]

    def curve(self, choose: Choice) -> list[float]:
        """Test accuracies of models fitted with none to all features removed."""
        removed: list[int] = []
        accuracies = []
        while True:
            model, accuracy = self.fitted(removed)
            accuracies.append(accuracy)
            if len(removed) == FEATURES:
                return accuracies
            removed.append(choose(model, removed))


def synthetic_check(seed: int, train: int = 200_000, test: int = 50_000) -> dict[str, Any]:
    """Columns of the table `synthetic_roar` for one seed, which draws the problem and its samples.

    Curves: `roar` removes features in the order of the first model, `recursive` asks each new model for the next one,
    `truth` removes the four that tell the class first, `worst` the other twelve.
    """
    removal = Removal(*draw_samples(seed, train, test))
    features = list(range(FEATURES))
    choices = {
        "roar": fixed_order(np.argsort(-np.abs(removal.fitted([])[0].coefficients)).tolist()),
        "recursive": strongest,
        "truth": fixed_order(features),
        "worst": fixed_order(features[INFORMATIVE:] + features[:INFORMATIVE]),
    }
    steps = FEATURES + 1
    return {
        "seed": np.full(len(choices) * steps, seed),
        "curve": np.repeat(list(choices), steps),
        "removed": np.tile(np.arange(steps), len(choices)),
        "accuracy": np.concatenate([removal.curve(choose) for choose in choices.values()]),
    }


SEEDS, TRAIN, TEST = range(5), 200_000, 50_000


@table("synthetic_roar", of="roar")
def synthetic_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """The removal of features where it is known which ones tell the class."""
    return SYNTHETIC_ROAR, pd.concat(
        [pd.DataFrame(synthetic_check(seed, TRAIN, TEST)) for seed in SEEDS], ignore_index=True
    )
