"""Builds tables: a protocol's from its scores, any other with the function that declares it."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from plumbline.errors import PlumblineError
from plumbline.protocols.explained import scores_of
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.store import CELL, TableSchema, read_table
from plumbline.tables.chance import at_chance, mark_at_chance
from plumbline.tables.sources import Sources

BuiltTable = tuple[TableSchema, pd.DataFrame]


def protocol_table(protocol: Any, sources: Sources) -> BuiltTable:
    """A protocol's summary of all cells' scores, with rows about models at chance marked."""
    frames = []
    for keys, path in sources["scores"]:
        summary = protocol.summarise(read_table(path, scores_of(protocol)))
        frames.append(summary.assign(**{key: keys[key] for key in CELL}))
    left_out = at_chance(sources.frame(PERFORMANCE))
    table = pd.concat(frames, ignore_index=True)
    # A comparison of two models is void if either of them is at chance.
    for seed in ("seed", "base_seed"):
        table = mark_at_chance(table, left_out, seed) if seed in table else table
    return protocol.table, table


def declared_table(make: Callable[[Sources], BuiltTable], sources: Sources) -> BuiltTable:
    """The schema and rows that a declared table's function returns."""
    built = make(sources)
    if not (isinstance(built, tuple) and len(built) == 2 and isinstance(built[0], TableSchema)):
        raise PlumblineError(f"The table function '{make.__name__}' must return its schema and a DataFrame.")
    return built
