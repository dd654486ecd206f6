"""Parquet tables, checked against their declared schema on writing and reading."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plumbline.errors import DamagedError, PlumblineError
from plumbline.store.records import replacing
from plumbline.store.schema import TableSchema


def _array(values: Any, type_: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(type_):
        # Arrow cannot dictionary-encode NumPy strings directly.
        return pa.array(list(values), type_.value_type, from_pandas=True).dictionary_encode()
    return pa.array(values, type_, from_pandas=True)


def write_table(
    path: str | Path, kind: TableSchema, columns: Mapping[str, Any] | pa.Table, group: str | None = None
) -> None:
    """Write a table of a declared schema, with columns in any order; nullable columns may be left out.

    Consecutive rows with the same value of the column `group` become a row group, which can be read alone.
    """
    schema, failure = kind.schema, f"A table '{kind.name}' cannot be written to '{path}'"
    given = columns.column_names if isinstance(columns, pa.Table) else list(columns)
    absent = [field for field in schema if field.nullable and field.name not in given]
    if set(given) | {field.name for field in absent} != set(schema.names):
        wrong = sorted((set(given) ^ set(schema.names)) - {field.name for field in absent})
        raise PlumblineError(f"{failure}: its columns differ in {', '.join(wrong)}.")
    try:
        if isinstance(columns, pa.Table):
            for field in absent:
                columns = columns.append_column(field, pa.nulls(len(columns), field.type))
            table = columns.select(schema.names).cast(schema)
        else:
            rows = len(next(iter(columns.values())))
            columns = {**columns, **{field.name: [None] * rows for field in absent}}
            arrays = [_array(columns[field.name], field.type) for field in schema]
            table = pa.Table.from_arrays(arrays, schema=schema)
        table.validate(full=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError) as error:
        raise PlumblineError(f"{failure}: {error}.") from error
    for field in schema:
        if not field.nullable and table[field.name].null_count:
            raise PlumblineError(f"{failure}: column '{field.name}' has missing values.")
    stamp = {"plumbline.artefact": kind.name, "plumbline.version": str(kind.version)}
    with replacing(Path(path)) as temporary:
        stamped = table.replace_schema_metadata(stamp)
        with pq.ParquetWriter(temporary, stamped.schema, compression="zstd") as writer:
            for part in _parts(stamped, group):
                writer.write_table(part)


def _parts(table: pa.Table, group: str | None) -> Iterator[pa.Table]:
    """The table split where the value of the column `group` changes."""
    values = table[group].to_pylist() if group else []
    starts = [i for i, value in enumerate(values) if i == 0 or value != values[i - 1]] or [0]
    for start, stop in zip(starts, [*starts[1:], len(table)], strict=True):
        yield table.slice(start, stop - start)


@contextmanager
def _reading_parquet(path: str | Path) -> Iterator[None]:
    """Raise an error for the user if a Parquet file is missing or damaged."""
    try:
        yield
    except FileNotFoundError as error:
        raise PlumblineError(f"The table '{path}' does not exist.") from error
    except (pa.ArrowException, OSError) as error:
        raise DamagedError(path, "is damaged and cannot be read as Parquet") from error


# A column and the value that selects the rows to read.
Where = tuple[str, str]


def _groups(file: pq.ParquetFile, where: Where | None) -> list[int]:
    """The row groups that may hold rows with this value, by their statistics."""
    groups = range(file.metadata.num_row_groups)
    if where is None:
        return list(groups)
    # A list column is one column of the file, like the others.
    column = file.schema_arrow.names.index(where[0])
    statistics = [file.metadata.row_group(i).column(column).statistics for i in groups]
    return [i for i, s in enumerate(statistics) if s is None or not s.has_min_max or s.min <= where[1] <= s.max]


def _filter(table: pa.Table, where: Where | None) -> pa.Table:
    return table if where is None else table.filter(pc.equal(table[where[0]].cast(pa.string()), where[1]))


def _with_key(columns: list[str] | None, where: Where | None) -> list[str] | None:
    """The columns to read: the requested ones and the one that selects rows."""
    return columns if columns is None or where is None or where[0] in columns else [*columns, where[0]]


def read_table(
    path: str | Path, kind: TableSchema, columns: list[str] | None = None, where: Where | None = None
) -> pa.Table:
    """Read a table of a declared schema; a damaged file or another schema or version is an error."""
    with _reading_parquet(path):
        # Not the dataset reader, which would add keys from the path as columns.
        file = pq.ParquetFile(path)
        _check(path, kind, file.schema_arrow)
        table = file.read_row_groups(_groups(file, where), _with_key(columns, where))
    table = _filter(table, where)
    return table if columns is None else table.select([name for name in kind.columns if name in columns])


# Bytes of a chunk of a table that is read in chunks.
CHUNK_BYTES = 2**24


def stream_table(
    path: str | Path, kind: TableSchema, columns: list[str], where: Where | None = None, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[pa.Table]:
    """Read a table in chunks of about `chunk_bytes` bytes, counted over all columns."""
    with _reading_parquet(path):
        file = pq.ParquetFile(path, memory_map=True)
        _check(path, kind, file.schema_arrow)
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        row_bytes = sum(group.total_byte_size for group in groups) / max(1, file.metadata.num_rows)
        rows = max(1, int(chunk_bytes / max(1, row_bytes)))
        for batch in file.iter_batches(rows, _groups(file, where), columns=_with_key(columns, where)):
            yield _filter(pa.Table.from_batches([batch]), where).select(columns)


def first_rows(
    path: str | Path, kind: TableSchema, columns: list[str], count: int, where: Where | None = None
) -> pa.Table:
    """The first rows of a table, at most `count`; the others are not read into memory."""
    with _reading_parquet(path):
        file = pq.ParquetFile(path)
        _check(path, kind, file.schema_arrow)
        for batch in file.iter_batches(count, _groups(file, where), columns=_with_key(columns, where)):
            if len(rows := _filter(pa.Table.from_batches([batch]), where).select(columns)):
                return rows
    return pa.schema([kind.schema.field(column) for column in columns]).empty_table()


def _check(path: str | Path, kind: TableSchema, schema: pa.Schema) -> None:
    stamp = schema.metadata or {}
    name, version = stamp.get(b"plumbline.artefact", b"?").decode(), stamp.get(b"plumbline.version", b"?").decode()
    if name != kind.name or version != str(kind.version):
        raise DamagedError(path, f"holds '{name}' version {version}, not '{kind.name}' version {kind.version}")
    if [(f.name, f.type) for f in schema] != [(f.name, f.type) for f in kind.schema]:
        raise DamagedError(path, f"does not have the columns of '{kind.name}' version {kind.version}")


def read_stamped(path: str | Path) -> tuple[str, pa.Table]:
    """The schema name in a table's metadata and the table; for tables that a plug-in protocol declares."""
    with _reading_parquet(path):
        table = pq.ParquetFile(path).read()
    return (table.schema.metadata or {}).get(b"plumbline.artefact", b"?").decode(), table
