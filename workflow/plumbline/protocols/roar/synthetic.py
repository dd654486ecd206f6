"""Hooker et al.'s synthetic check: four of sixteen features are informative, and removal must find them (2019, Fig. 3).

All features are linear combinations of the same three variables, so any three of them determine the class as long as
one is among the four. The importances of a model of all features therefore cannot show which ones are redundant.
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
# Directions in which features spread by less than this share of the widest one are rounding errors.
NARROWEST = 1e-6
# Separable classes have no optimal weights, only an optimal direction, along which the gradient vanishes.
FLATTEST, MOST_STEPS = 1e-5, 50
# Added to the Hessian, which vanishes too; it shortens steps without moving the optimum.
DAMPING = 1e-7
MANY = 10_000
SEEDS = range(5)


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


# The feature to remove next, given the latest model and the features removed so far.
Choice = Callable[[Regression, list[int]], int]


def draw_samples(seed: int, *sizes: int) -> list[Samples]:
    """Sets of samples of one problem: x = a z / 10 + d η + ε / 10 and y = [z > 0], with ε shared by the features."""
    generator = np.random.default_rng(seed)
    a = np.where(np.arange(FEATURES) < INFORMATIVE, generator.standard_normal(FEATURES), 0.0)
    d = generator.standard_normal(FEATURES)
    mixed = np.stack([a / 10, d, np.full(FEATURES, 0.1)])
    latents = [generator.standard_normal((size, len(mixed))) for size in sizes]
    return [Samples(latent @ mixed, latent[:, 0] > 0) for latent in latents]


def fit_regression(samples: Samples) -> Regression:
    """Unpenalised logistic regression by Newton's method; of all solutions, the one of the smallest norm.

    It works in the principal directions of the features, because linearly dependent or removed features would make the
    Hessian singular.
    """
    spread, directions = np.linalg.eigh(samples.features.T @ samples.features / len(samples.features))
    kept = spread > max(spread[-1], np.finfo(float).tiny) * NARROWEST**2
    whiten = directions[:, kept] / np.sqrt(spread[kept])
    inputs = np.column_stack([samples.features @ whiten, np.ones(len(samples.features))])
    weights = np.zeros(inputs.shape[1])
    # With many samples, subsets come close to the optimum at less cost.
    for every in (100, 10, 1) if len(inputs) > MANY else (1,):
        weights = _newton(inputs[::every], samples.labels[::every], weights)
    return Regression(whiten @ weights[:-1], float(weights[-1]))


def _newton(inputs: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weights of an unpenalised logistic regression, starting from `weights`."""
    for _ in range(MOST_STEPS):
        probabilities = expit(inputs @ weights)
        gradient = inputs.T @ (probabilities - labels) / len(inputs)
        if np.abs(gradient).max() < FLATTEST:
            break
        hessian = (inputs.T * (probabilities * (1 - probabilities))) @ inputs / len(inputs)
        weights = weights - np.linalg.solve(hessian + DAMPING * np.eye(len(weights)), gradient)
    return weights


def strongest(model: Regression, removed: list[int]) -> int:
    """The remaining feature with the largest absolute coefficient."""
    importances = np.abs(model.coefficients)
    importances[removed] = -np.inf
    return int(importances.argmax())


def fixed_order(order: Sequence[int]) -> Choice:
    """Remove the features in a given order, whatever the models."""
    return lambda model, removed: order[len(removed)]


class Removal:
    """Models fitted without some of the features; each set of features is fitted once."""

    def __init__(self, train: Samples, test: Samples) -> None:
        self._train, self._test = train, test
        self._fitted: dict[frozenset[int], tuple[Regression, float]] = {}

    def fitted(self, removed: Sequence[int]) -> tuple[Regression, float]:
        """The model and its test accuracy with the removed features set to 0 in both sets."""
        key = frozenset(removed)
        if key not in self._fitted:
            kept = np.array([feature not in key for feature in range(FEATURES)], dtype=float)
            model = fit_regression(Samples(self._train.features * kept, self._train.labels))
            self._fitted[key] = model, model.accuracy(Samples(self._test.features * kept, self._test.labels))
        return self._fitted[key]

    def curve(self, choose: Choice) -> list[float]:
        """Test accuracies of models fitted with none to all features removed."""
        removed: list[int] = []
        model, accuracy = self.fitted(removed)
        accuracies = [accuracy]
        while len(removed) < FEATURES:
            removed.append(choose(model, removed))
            model, accuracy = self.fitted(removed)
            accuracies.append(accuracy)
        return accuracies


def synthetic_check(seed: int, train: int = 200_000, test: int = 50_000) -> dict[str, Any]:
    """Columns of the table `synthetic_roar` for one seed, which draws the problem and its samples.

    Curves: `roar` removes features in the order of the first model, `recursive` the strongest of each refitted model,
    `truth` the four informative ones first, `worst` the other twelve first.
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


@table("synthetic_roar", of="roar")
def synthetic_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """The removal of features where the informative ones are known."""
    return SYNTHETIC_ROAR, pd.concat([pd.DataFrame(synthetic_check(seed)) for seed in SEEDS], ignore_index=True)
