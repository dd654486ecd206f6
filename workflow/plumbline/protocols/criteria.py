"""Scorecard criteria: one number per measure, dataset, model and seed, read from a protocol's table."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from plumbline.config.variants import PLAIN
from plumbline.registry import load

KEYS = ["dataset", "variant", "model", "measure"]
# The columns that a criterion's function returns, with one row per seed.
VALUES = [*KEYS, "seed", "value"]
# Which direction is better, after the name of a criterion.
ARROWS = {"higher": "↑", "lower": "↓"}
Cell = tuple[str, str, str]
Twins = Mapping[Cell, Mapping[str, str]]


class Measures(NamedTuple):
    """The study's measures: the registered measure behind each name, the name of the random one and, by cell, the twin
    of a measure: the first one that ranks all words alike; and the base of each degraded one."""

    kinds: Mapping[str, str]
    random: str
    twins: Twins
    degraded: Mapping[str, str] = {}


class Criterion(NamedTuple):
    """A scorecard column: its table and how to read it, which direction is better, its bounds, the dataset variants it
    applies to, if it is about a single kind of measure, which, whether it is about faithfulness, and how many measures
    besides the random one it needs."""

    name: str
    table: str
    direction: str
    read: Callable[[pd.DataFrame, Measures], pd.DataFrame]
    bounds: tuple[float, float] = (-np.inf, np.inf)
    variants: str = PLAIN
    measure: str = ""
    faithfulness: bool = True
    least_measures: int = 1

    def judges(self, variant: str) -> bool:
        """Whether it applies to a variant."""
        return self.variants == "every" or (self.variants == PLAIN) == (variant == PLAIN)


def criterion_of(declared: Mapping[str, Any]) -> Criterion:
    """The criterion of a registry entry with `name`, `facts`, `options` and the `object` that reads a table."""
    facts, function, options = declared["facts"], load(declared["object"]), declared["options"]
    low, high = facts["range"] or (None, None)
    return Criterion(
        declared["name"],
        facts["table"],
        facts["direction"],
        lambda table, measures: function(table, measures, **options),
        (-np.inf if low is None else low, np.inf if high is None else high),
        facts["variants"],
        facts["measure"],
        facts["faithfulness"],
        facts["least_measures"],
    )
