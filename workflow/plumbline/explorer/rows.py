"""Rows of large tables, found by seed and instance: they lie in a file of their own, and memory holds their keys."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from plumbline.data.instances import ragged
from plumbline.store import TableSchema, stream_table

KEY = ("split", "instance")


@dataclass(frozen=True)
class Chosen:
    """The instances of a dataset that are shown, in order: the split of each, its place in `splits`, and its number."""

    splits: list[str]
    split: np.ndarray
    number: np.ndarray

    @classmethod
    def of(cls, numbers: Mapping[str, Sequence[int] | np.ndarray]) -> "Chosen":
        """The instances with these numbers of each split."""
        ordered = [np.unique(np.asarray(own, dtype=np.int64)) for own in numbers.values()]
        split = np.repeat(np.arange(len(ordered)), [len(own) for own in ordered])
        return cls(list(numbers), split, np.concatenate([*ordered, np.array([], np.int64)]))

    def __len__(self) -> int:
        return len(self.number)

    def places(self, table: pa.Table) -> np.ndarray:
        """Where the instance of each row stands, or -1 if it is not shown."""
        words, numbers = table["split"].combine_chunks(), table["instance"].to_numpy().astype(np.int64)
        known = [self.splits.index(word) if word in self.splits else -1 for word in words.dictionary.to_pylist()]
        split = np.array(known)[words.indices.to_numpy(zero_copy_only=False)]
        # Splits and the numbers of each are in order, and so are these keys.
        keys, asked = self.split << 32 | self.number, split << 32 | numbers
        found = np.searchsorted(keys, asked)
        there = (found < len(keys)) & (split >= 0)
        there[there] = keys[found[there]] == asked[there]
        return np.where(there, found, -1)


class InstanceRows:
    """The rows of a table about chosen instances. `columns` are those that are wanted besides the keys; `where` is the
    value that a column must have."""

    def __init__(
        self,
        path: str,
        kind: TableSchema,
        columns: Sequence[str],
        chosen: Chosen,
        folder: Path,
        where: tuple[str, str] | None = None,
    ) -> None:
        schema = kind.schema
        seeded = "seed" in schema.names
        read = [name for name in schema.names if name in {*columns, *KEY} or name == "seed"]
        kept = pa.schema([schema.field(name) for name in columns])
        spool = str(folder / f"{len(list(folder.iterdir()))}.arrow")
        keys = [np.zeros((4, 0), np.int64)]
        with pa.ipc.new_file(spool, kept) as writer:
            for table in stream_table(path, kind, read, where):
                places = chosen.places(table)
                rows = np.flatnonzero(places >= 0)
                if len(rows):
                    seeds = table["seed"].to_numpy()[rows] if seeded else np.zeros(len(rows), np.int64)
                    batch = np.full(len(rows), len(keys) - 1)
                    keys.append(np.stack([seeds, places[rows], batch, np.arange(len(rows))]))
                    writer.write_table(table.select(columns).take(rows).cast(kept))
        self._file = pa.ipc.open_file(pa.memory_map(spool))
        joined = np.concatenate(keys, axis=1)
        self._seed, self._place, self._batch, self._at = joined[:, np.lexsort((joined[1], joined[0]))]

    @property
    def seeds(self) -> list[int]:
        """The seeds that the rows are of."""
        return np.unique(self._seed).tolist()

    def of(self, seed: int, start: int, stop: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows of a seed about the instances from `start` to `stop`, each after its place among these."""
        first, last = np.searchsorted(self._seed, [seed, seed + 1])
        low, high = first + np.searchsorted(self._place[first:last], [start, stop])
        for batch in np.unique(self._batch[low:high]):
            here = low + np.flatnonzero(self._batch[low:high] == batch)
            table = pa.Table.from_batches([self._file.get_batch(int(batch)).take(pa.array(self._at[here]))])
            columns = {name: _values(table[name]) for name in table.column_names}
            for i, place in enumerate(self._place[here]):
                yield int(place) - start, {name: values[i] for name, values in columns.items()}


def _values(column: pa.ChunkedArray) -> list[Any]:
    """One value per row: an array of a list of numbers or flags, None of what is missing."""
    type_ = column.type
    if not pa.types.is_list(type_) or pa.types.is_string(type_.value_type):
        return column.to_pylist()
    missing = column.is_null().to_pylist()
    return [None if absent else values for absent, values in zip(missing, ragged(column), strict=True)]
