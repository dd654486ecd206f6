"""Rows of a table in a file: CSV, TSV, JSON lines or Parquet. Imported while the Snakefile is parsed, so it imports
nothing heavy."""

import csv
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from plumbline.config.own_data import format_of
from plumbline.data.sources import read_lines
from plumbline.errors import PlumblineError, nearest

SEPARATORS = (",", ";", "\t", "|")
# The lines of a file of JSON lines whose keys are its columns.
FIRST_LINES = 100


class Row(NamedTuple):
    """The values of a row by column, and where it stands, for messages."""

    values: dict[str, Any]
    file: str
    number: int
    unit: str = "line"
    split: str = ""

    @property
    def where(self) -> str:
        """The beginning of a message about this row."""
        return f"'{self.file}', {self.unit} {self.number}"


@dataclass(frozen=True)
class TableFile:
    """A table in a file and how it is written; `split` is that of all its rows, if known. The format `auto` is that of
    the file's ending, and an empty separator the one that gives the heading the most columns."""

    path: str
    format: str = "auto"
    separator: str = ""
    encoding: str = "utf-8"
    quotes: bool = True
    split: str = ""

    def columns(self) -> list[str]:
        """The names of the columns; of JSON lines, the keys of the first lines."""
        if not os.path.isfile(self.path):
            kind = "is a folder; give a file" if os.path.isdir(self.path) else "does not exist"
            raise PlumblineError(f"The file '{self.path}' {kind}.")
        match format_of(self.path, self.format):
            case "parquet":
                return list(self._parquet().schema_arrow.names)
            case "jsonl":
                return list(dict.fromkeys(key for row in islice(self._objects(), FIRST_LINES) for key in row.values))
        heading = next(self._lines(), (1, ""))[1]
        return self._split(heading, self._separator(heading))

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        """The values of these columns, which must exist, in all rows."""
        self.check_columns(columns)
        match format_of(self.path, self.format):
            case "parquet":
                return self._records(columns)
            case "jsonl":
                return self._objects()
        return self._fields(columns)

    def check_columns(self, columns: Iterable[str]) -> None:
        """Refuse a column that the file does not have, or has twice, with those that it has."""
        names = self.columns()
        for column in columns:
            if fault := missing_column(column, names):
                raise PlumblineError(f"'{self.path}' {fault}")

    # Text.

    def _lines(self) -> Iterator[tuple[int, str]]:
        """The lines that are not blank, without a byte order mark, with their numbers."""
        if "\n".encode(self.encoding) == b"\n":
            # Of the encodings of Unicode, a byte order mark may stand before the first line.
            encoding = "utf-8-sig" if self.encoding.lower() in ("utf-8", "utf8") else self.encoding
            return read_lines(Path(self.path), encoding, self._encoding_advice())
        try:
            text = Path(self.path).read_bytes().decode(self.encoding)
        except UnicodeDecodeError:
            raise PlumblineError(f"'{self.path}' is not {self.encoding} text: {self._encoding_advice()}.") from None
        lines = ((number, line.rstrip("\r")) for number, line in enumerate(text.split("\n"), 1))
        return ((number, line) for number, line in lines if line.strip())

    def _encoding_advice(self) -> str:
        with open(self.path, "rb") as file:
            wide = file.read(2) in (b"\xff\xfe", b"\xfe\xff")
        if wide:
            return "write `encoding: utf-16`, which its first bytes suggest"
        return "write its `encoding:`, such as cp1252 (Windows) or latin-1, or save it as UTF-8"

    def _split(self, line: str, separator: str) -> list[str]:
        """The fields of a single line."""
        return next(csv.reader([line], delimiter=separator, quoting=self._quoting), [])

    def _separator(self, heading: str) -> str:
        if self.separator or format_of(self.path, self.format) == "tsv":
            return self.separator or "\t"
        return max(SEPARATORS, key=lambda separator: len(self._split(heading, separator)))

    @property
    def _quoting(self) -> Literal[0, 3]:
        return csv.QUOTE_MINIMAL if self.quotes else csv.QUOTE_NONE

    def _fields(self, columns: Sequence[str]) -> Iterator[Row]:
        """The rows of a CSV or TSV file; the number of a row is that of its first line."""
        lines = self._lines()
        heading = next(lines)[1]
        separator = self._separator(heading)
        names = self._split(heading, separator)
        wanted = [(column, names.index(column)) for column in columns]
        numbers: list[int] = []

        def remaining() -> Iterator[str]:
            for number, line in lines:
                numbers.append(number)
                yield f"{line}\n"

        # Strict, or a quotation mark that is never closed would make one row of the rest of the file.
        reader = csv.reader(remaining(), delimiter=separator, quoting=self._quoting, strict=self.quotes)
        while True:
            numbers.clear()
            try:
                fields = _next_row(reader)
            except csv.Error as error:
                raise PlumblineError(
                    f"'{self.path}', line {numbers[0]}: the row cannot be read ({error}); double the quotation marks "
                    "inside a field, or write `quotes: false` if they are plain characters."
                ) from None
            if fields is None:
                return
            if len(fields) != len(names):
                raise PlumblineError(
                    f"'{self.path}', line {numbers[0]}: the row has {len(fields)} fields, but the header has "
                    f"{len(names)}; put a field that contains the separator in quotation marks, or write another "
                    "`separator:`."
                )
            yield Row({column: fields[k] for column, k in wanted}, self.path, numbers[0], "line", self.split)

    def _objects(self) -> Iterator[Row]:
        """The rows of a file of JSON lines."""
        for number, line in self._lines():
            try:
                values = json.loads(line)
            except ValueError as error:
                reason = f": {error}" if line.lstrip().startswith("{") else ""
                raise PlumblineError(
                    f"'{self.path}', line {number} is not JSON{reason}; write one object, {{...}}, on each line."
                ) from None
            if not isinstance(values, dict):
                raise PlumblineError(
                    f"'{self.path}', line {number} is not an object; write one object, {{...}}, on each line."
                )
            yield Row(values, self.path, number, "line", self.split)

    # Parquet.

    def _parquet(self) -> Any:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        try:
            return ParquetFile(self.path)
        except (ArrowException, OSError) as error:
            raise PlumblineError(f"'{self.path}' is not Parquet ({str(error).splitlines()[0].rstrip('.')}).") from None

    def _records(self, columns: Sequence[str]) -> Iterator[Row]:
        number = 0
        for batch in self._parquet().iter_batches(columns=list(dict.fromkeys(columns))):
            for values in batch.to_pylist():
                number += 1
                yield Row(values, self.path, number, "row", self.split)


def _next_row(reader: Iterator[list[str]]) -> list[str] | None:
    """The next row; a text may be longer than the limit of the csv module, which is one for all readers."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        return next(reader, None)
    finally:
        csv.field_size_limit(limit)


def missing_column(column: str, names: Sequence[str]) -> str:
    """What is wrong with the name of a column, given those of a table, or an empty string."""
    if names.count(column) == 1:
        return ""
    if column in names:
        return f"has two columns '{column}'; rename one."
    hint = nearest(column, names)
    others = "" if "choose from" in hint or len(names) < 2 else f" Its columns are {', '.join(names)}."
    return f"has no column '{column}'; {hint}{others}"
