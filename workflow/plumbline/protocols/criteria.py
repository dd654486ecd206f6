"""Criteria of the scorecard: the numbers that a protocol gives to each measure of a dataset and model, seed by seed."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from plumbline.config.variants import PLAIN
from plumbline.registry import load

KEYS = ["dataset", "variant", "model", "measure"]
# What a criterion's function returns: a row for each seed.
VALUES = [*KEYS, "seed", "value"]
Cell = tuple[str, str, str]


class Measures(NamedTuple):
    """What criteria know of the study's measures: the registered one behind each name, the name of the random one and,
    in each cell, the first measure that one ranks like."""

    kinds: Mapping[str, str]
    random: str
    twins: Mapping[Cell, Mapping[str, str]]


class Criterion(NamedTuple):
    """A column of the scorecard: what it is called, the table it is read from, which values are better, how to read
    it, its bounds, which variants of datasets it judges, and the kind of measure that it is about, if one alone."""

    name: str
    table: str
    direction: str
    read: Callable[[pd.DataFrame, Measures], pd.DataFrame]
    bounds: tuple[float, float] = (-np.inf, np.inf)
    variants: str = PLAIN
    measure: str = ""

    def judges(self, variant: str) -> bool:
        """Whether it has to do with a variant."""
        return self.variants == "every" or (self.variants == PLAIN) == (variant == PLAIN)


def criterion_of(declared: Mapping[str, Any]) -> Criterion:
    """A declared criterion: its `name`, `facts`, `options` and the `object` that reads a table."""
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
    )
