"""The user's own texts in a table: CSV, TSV, JSON lines or Parquet."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from plumbline.config.own_data import split_paths
from plumbline.data.corpus import Corpus
from plumbline.data.own_texts import TextOptions, read_corpus
from plumbline.data.tabular import Row, TableFile
from plumbline.registry import dataset
from plumbline.runtime.progress import shown


@dataset(
    "table",
    source="your own file",
    licence="that of your data",
    required=["path", "text", "label"],
    limits={"dev_share": [0, 0.9]},
)
def table(
    raw: Path,
    seed: int,
    *,
    path: str | dict[str, str] = "",
    format: Literal["auto", "csv", "tsv", "jsonl", "parquet"] = "auto",
    separator: str = "",
    encoding: str = "utf-8",
    quotes: bool = True,
    options: TextOptions = TextOptions(),
) -> Corpus:
    """Your own texts: a file, or one for each split, with a column `text`, a column `label` and any others that the
    options name (page *Own data*).

    Options:
        path: The file, or a file for each split.
        format: Format of the file; `auto` takes it from the ending of its name.
        separator: Character between the fields of a CSV file; by default the one that gives most columns.
        encoding: Encoding of the file, such as `utf-8`, `cp1252` or `latin-1`.
        quotes: Whether quotation marks enclose fields; otherwise they are plain characters.
    """
    rows = table_rows(path, TableFile("", format, separator, encoding, quotes), options)
    return read_corpus(shown(rows, "read", "row"), options, seed)


def table_rows(path: str | dict[str, str], table: TableFile, options: TextOptions) -> Iterator[Row]:
    """The rows of all files, each with the split of its file."""
    for split, file in split_paths(path):
        yield from replace(table, path=file, split=split).rows(options.columns)
