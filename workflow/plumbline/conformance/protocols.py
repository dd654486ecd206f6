"""Checks of protocols: their scores and their summary tables."""

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
from plumbline.conformance.declarations import check_documentation, with_few_steps
from plumbline.conformance.examples import example_explained, reads_one_text
from plumbline.conformance.notes import Checked, type_name
from plumbline.errors import PlumblineError, nearest
from plumbline.protocols.explained import scores_of
from plumbline.registry import PACKAGE, Declaration, Registry, lacking, load

# The tables of the library.
for _path in sorted(PACKAGE.rglob("schemas.py")):
    import_module(".".join(("plumbline", *_path.relative_to(PACKAGE).with_suffix("").parts)))
OWN_TABLES = dict(store.SCHEMAS)


def check_protocol(declaration: Declaration, registry: Registry) -> Iterator[str]:
    """A protocol deterministically turns importances into valid rows of scores, and scores into its table."""
    yield from check_documentation(declaration, "equation")
    known = registry.names("metric")
    for name in declaration.metrics:
        if name not in known:
            yield f"its declaration states the metric '{name}', which does not exist; {nearest(name, known)}"
    if declaration.name in TABLES:
        yield f"every study has a table '{declaration.name}'; choose another name."
    options = declaration.defaults
    few = with_few_steps(options)
    if few != options:
        # A protocol may need more steps.
        with suppress(Exception):
            results = list(_check_scoring(declaration, few))
            if all(isinstance(result, Checked) for result in results):
                yield from results
                return
    yield from _check_scoring(declaration, options)


def _check_scoring(declaration: Declaration, options: dict[str, Any]) -> Iterator[str]:
    protocol = load(declaration.pointer)(**options)
    absent = [part for part in ("table", "score", "summarise") if not hasattr(protocol, part)]
    if absent:
        yield from (f"it has no `{part}`." for part in absent)
        return
    taken = [name for name, schema in OWN_TABLES.items() if store.SCHEMAS[name] is not schema]
    if taken:
        yield f"its file declares the table '{taken[0]}', which plumbline already has; choose another name."
        return
    schemas = {"table": protocol.table, "scores": scores_of(protocol)}
    for part, schema in schemas.items():
        if not isinstance(schema, store.TableSchema):
            yield f"its `{part}` is {schema!r}; set it to a table returned by plumbline.store.declare."
            return
    with TemporaryDirectory() as folder:
        explained = example_explained(Path(folder), _example_model_name(declaration))
        try:
            first, again = (
                _write_and_read(Path(folder), schemas["scores"], protocol.score(explained)) for _ in range(2)
            )
        except PlumblineError as error:
            yield f"its scores cannot be stored: {_without_path(error)}"
            return
        if not first.equals(again):
            yield "its scores differ between runs."
        yield from _check_summary(protocol, first, Path(folder))
        yield Checked(f"{len(first)} rows of scores")


def _check_summary(protocol: Any, scores: pa.Table, folder: Path) -> Iterator[str]:
    """A summary is a pandas DataFrame with the declared columns except those of the cell."""
    summary = protocol.summarise(scores)
    if not isinstance(summary, pd.DataFrame):
        yield f"its summarise returns {type_name(summary)}, not a pandas DataFrame."
        return
    expected = set(protocol.table.columns) - set(store.CELL)
    if set(summary.columns) != expected:
        differing = ", ".join(sorted(set(summary.columns) ^ expected))
        yield f"its summary and its declared table differ in the columns: {differing}."
        return
    cell = summary.assign(**dict.fromkeys(store.CELL, "example"))
    try:
        _write_and_read(folder, protocol.table, {column: cell[column] for column in cell})
    except PlumblineError as error:
        yield f"its summary cannot be stored: {_without_path(error)}"


def _write_and_read(folder: Path, schema: store.TableSchema, columns: Any) -> pa.Table:
    path = folder / "written.parquet"
    store.write_table(path, schema, columns)
    return store.read_table(path, schema)


def _without_path(error: PlumblineError) -> str:
    """The message of an error about a table without its path."""
    return str(error).partition("written.parquet': ")[2] or str(error)


def _example_model_name(declaration: Declaration) -> str:
    """A model that provides what a protocol needs."""
    models = [m for m in Registry().all("model") if not lacking(declaration, declaration.defaults, m.provides)]
    names = [model.name for model in models if reads_one_text(model)]
    return "average-tanh" if "average-tanh" in names or not names else names[0]
