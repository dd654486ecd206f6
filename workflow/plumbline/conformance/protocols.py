"""Protocols: their scores and the tables that they make of them."""

from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa

from plumbline import store
from plumbline.config.names import TABLES
from plumbline.conformance.declarations import check_documentation, default_options, with_few_steps
from plumbline.conformance.examples import example_explained, reads_one_text
from plumbline.conformance.notes import Tried, type_name
from plumbline.errors import PlumblineError
from plumbline.protocols.explained import scores_of
from plumbline.registry import PACKAGE, Declaration, Registry, load

# The tables that are plumbline's own.
for _path in sorted(PACKAGE.rglob("schemas.py")):
    import_module(".".join(("plumbline", *_path.relative_to(PACKAGE).with_suffix("").parts)))
OWN_TABLES = dict(store.SCHEMAS)


def check_protocol(declaration: Declaration) -> Iterator[str]:
    """A protocol turns importances into valid rows of scores, deterministically, and scores into its table."""
    yield from check_documentation(declaration, "equation")
    if declaration.name in TABLES:
        yield f"every study has a table '{declaration.name}'; choose another name."
    options = default_options(declaration)
    few = with_few_steps(options)
    if few != options:
        # A protocol may ask for more steps than that.
        with suppress(Exception):
            told = list(_check_scoring(declaration, few))
            if all(isinstance(one, Tried) for one in told):
                yield from told
                return
    yield from _check_scoring(declaration, options)


def _check_scoring(declaration: Declaration, options: dict[str, Any]) -> Iterator[str]:
    protocol = load(declaration.pointer)(**options)
    lacking = [part for part in ("table", "score", "summarise") if not hasattr(protocol, part)]
    if lacking:
        yield from (f"it has no `{part}`." for part in lacking)
        return
    taken = [kind for kind, own in OWN_TABLES.items() if store.SCHEMAS[kind] is not own]
    if taken:
        yield f"its file declares the table '{taken[0]}', which is plumbline's own; choose another name."
        return
    kinds = {"table": protocol.table, "scores": scores_of(protocol)}
    for part, kind in kinds.items():
        if not isinstance(kind, store.TableSchema):
            yield f"its `{part}` is {kind!r}; make it a table that plumbline.store.declare returns."
            return
    with TemporaryDirectory() as folder:
        explained = example_explained(Path(folder), _example_of(declaration))
        try:
            first, again = (_stored(Path(folder), kinds["scores"], protocol.score(explained)) for _ in range(2))
        except PlumblineError as error:
            yield f"its scores cannot be stored: {_without_path(error)}"
            return
        if not first.equals(again):
            yield "its scores differ when it is run again."
        yield from _check_summary(protocol, first, Path(folder))
        yield Tried(f"{len(first)} rows of scores")


def _check_summary(protocol: Any, scores: pa.Table, folder: Path) -> Iterator[str]:
    """A summary is a table of pandas with the columns that are declared, but for those that name the cell."""
    summary = protocol.summarise(scores)
    if not isinstance(summary, pd.DataFrame):
        yield f"its summarise returns {type_name(summary)}, not a DataFrame of pandas."
        return
    expected = set(protocol.table.columns) - set(store.CELL)
    if set(summary.columns) != expected:
        differing = ", ".join(sorted(set(summary.columns) ^ expected))
        yield f"its summary differs from its declared table in {differing}."
        return
    cell = summary.assign(**dict.fromkeys(store.CELL, "example"))
    try:
        _stored(folder, protocol.table, {column: cell[column] for column in cell})
    except PlumblineError as error:
        yield f"its summary cannot be stored: {_without_path(error)}"


def _stored(folder: Path, kind: store.TableSchema, columns: Any) -> pa.Table:
    """A table as it is read after it was written."""
    path = folder / "written.parquet"
    store.write_table(path, kind, columns)
    return store.read_table(path, kind)


def _without_path(error: PlumblineError) -> str:
    """What is wrong with a table, without where it would have been."""
    return str(error).partition("written.parquet': ")[2] or str(error)


def _example_of(declaration: Declaration) -> str:
    """A model that has what a protocol needs."""
    needs = set(declaration.needs)
    fitting = [m.name for m in Registry().all("model") if needs <= set(m.provides) and reads_one_text(m)]
    return next((name for name in ("average-tanh", *fitting) if name in fitting), "average-tanh")
