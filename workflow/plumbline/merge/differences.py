"""Differences of options, params and artefacts that matter: paths, seconds and the writer of a file do not."""

import filecmp
import os
from pathlib import Path
from typing import Any, NamedTuple

from plumbline.store import read_json

# The column of a table that measures time.
SECONDS = "seconds"


class Difference(NamedTuple):
    """A key, with dots between levels, whose values differ."""

    key: str
    one: Any
    other: Any


def first_difference(one: Any, other: Any, key: str = "") -> Difference | None:
    """The first key whose values differ in nested values; files may be in different folders."""
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = [(str(name), one.get(name), other.get(name)) for name in dict.fromkeys([*one, *other])]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [("", *pair) for pair in zip(one, other, strict=True)]
    else:
        return None if one == other or _same_file_name(one, other) else Difference(key, one, other)
    found = (first_difference(a, b, ".".join(filter(None, (key, name)))) for name, a, b in pairs)
    return next(filter(None, found), None)


def _same_file_name(one: Any, other: Any) -> bool:
    """Whether two values name files of one name, at least one of them by its absolute path."""
    texts = isinstance(one, str) and isinstance(other, str) and (os.path.isabs(one) or os.path.isabs(other))
    return texts and Path(one).name == Path(other).name


def same_artefact(one: Path, other: Path) -> bool:
    """Whether two files have the same content; seconds of a history are not content."""
    if filecmp.cmp(one, other, shallow=False):
        return True
    if one.suffix == ".json":
        return first_difference(read_json(one), read_json(other)) is None
    return one.suffix == ".parquet" and _content(one) == _content(other)


def _content(path: Path) -> bytes:
    """The schema and rows of a table, without what depends on the writer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path, partitioning=None)
    table = table.drop_columns([name for name in table.column_names if name == SECONDS]).replace_schema_metadata(None)
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(buffer.getvalue())
