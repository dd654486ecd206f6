"""Table schemas with name, version and columns. Each is declared next to the code that owns the table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from plumbline.errors import PlumblineError, nearest

INTEGERS = pa.list_(pa.int32())
NUMBERS = pa.list_(pa.float32())
FLAGS = pa.list_(pa.bool_())
GROUPS = pa.list_(pa.int8())
WORD = pa.dictionary(pa.int32(), pa.string())
INSTANCE_KEY = {"split": WORD, "instance": pa.int32()}
CELL = {"dataset": WORD, "variant": WORD, "model": WORD}
STATUS = {"status": WORD, "reason": WORD}


@dataclass(frozen=True)
class TableSchema:
    """A table schema: its name, version and columns. Bump the version when the meaning of a column changes.

    `latex` is the layout for papers: the rows to `keep`, the `index` of the rows, the `columns` and `values` of the
    cells, their `decimals` and `interval`; or the columns to `show` unchanged.
    """

    name: str
    version: int
    schema: pa.Schema
    latex: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)


# Schemas declared by imported modules.
SCHEMAS: dict[str, TableSchema] = {}


def declare(
    name: str,
    version: int,
    columns: Mapping[str, pa.DataType],
    required: Iterable[str] = (),
    latex: Mapping[str, Any] | None = None,
) -> TableSchema:
    """Declare a table schema; `required` columns may not contain nulls."""
    not_null = set(required)
    fields = [pa.field(column, type_, nullable=column not in not_null) for column, type_ in columns.items()]
    SCHEMAS[name] = TableSchema(name, version, pa.schema(fields), latex or {})
    return SCHEMAS[name]


def schema_of(name: str) -> TableSchema:
    """The table schema of this name, whose module must be imported."""
    try:
        return SCHEMAS[name]
    except KeyError:
        raise PlumblineError(f"There is no kind of table '{name}'; {nearest(name, list(SCHEMAS))}") from None
