"""Rows of large tables by seed and instance: the rows are spooled to a file, only their keys are in memory."""

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
class ChosenInstances:
    """The shown instances of a dataset, in order: the index in `splits` of each one's split, and its number."""

    splits: list[str]
    split: np.ndarray
    number: np.ndarray

    @classmethod
    def from_numbers(cls, numbers: Mapping[str, Sequence[int] | np.ndarray]) -> "ChosenInstances":
        """The instances with these numbers of each split."""
        ordered = [np.unique(np.asarray(of_split, dtype=np.int64)) for of_split in numbers.values()]
        split = np.repeat(np.arange(len(ordered)), [len(of_split) for of_split in ordered])
        return cls(list(numbers), split, np.concatenate([*ordered, np.array([], np.int64)]))

    def __len__(self) -> int:
        return len(self.number)

    def positions(self, table: pa.Table) -> np.ndarray:
        """The position of each row's instance among the shown ones, or -1."""
        column, numbers = table["split"].combine_chunks(), table["instance"].to_numpy().astype(np.int64)
        known = [self.splits.index(name) if name in self.splits else -1 for name in column.dictionary.to_pylist()]
        split = np.array(known)[column.indices.to_numpy(zero_copy_only=False)]
        # Splits and the numbers of each are sorted, and so are these keys.
        keys, row_keys = self.split << 32 | self.number, split << 32 | numbers
        positions = np.searchsorted(keys, row_keys)
        shown = (positions < len(keys)) & (split >= 0)
        shown[shown] = keys[positions[shown]] == row_keys[shown]
        return np.where(shown, positions, -1)


class InstanceRows:
    """The rows of a table for the chosen instances, with these columns besides the keys; `where` is a column and the
    value that it must have."""

    def __init__(
        self,
        path: str,
        kind: TableSchema,
        columns: Sequence[str],
        chosen: ChosenInstances,
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
                positions = chosen.positions(table)
                rows = np.flatnonzero(positions >= 0)
                if len(rows):
                    seeds = table["seed"].to_numpy()[rows] if seeded else np.zeros(len(rows), np.int64)
                    batch = np.full(len(rows), len(keys) - 1)
                    keys.append(np.stack([seeds, positions[rows], batch, np.arange(len(rows))]))
                    writer.write_table(table.select(columns).take(rows).cast(kept))
        self._file = pa.ipc.open_file(pa.memory_map(spool))
        joined = np.concatenate(keys, axis=1)
        self._seed, self._position, self._batch, self._row = joined[:, np.lexsort((joined[1], joined[0]))]

    @property
    def seeds(self) -> list[int]:
        """The seeds of the rows."""
        return np.unique(self._seed).tolist()

    def between(self, seed: int, start: int, stop: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows of a seed for the instances from `start` to `stop`, each with its position from `start`."""
        first, last = np.searchsorted(self._seed, [seed, seed + 1])
        low, high = first + np.searchsorted(self._position[first:last], [start, stop])
        for batch in np.unique(self._batch[low:high]):
            index = low + np.flatnonzero(self._batch[low:high] == batch)
            table = pa.Table.from_batches([self._file.get_batch(int(batch)).take(pa.array(self._row[index]))])
            columns = {name: _values(table[name]) for name in table.column_names}
            for i, position in enumerate(self._position[index]):
                yield int(position) - start, {name: values[i] for name, values in columns.items()}


def _values(column: pa.ChunkedArray) -> list[Any]:
    """One value per row: an array for a list of numbers or flags, None for a missing one."""
    type_ = column.type
    if not pa.types.is_list(type_) or pa.types.is_string(type_.value_type):
        return column.to_pylist()
    missing = column.is_null().to_pylist()
    return [None if absent else values for absent, values in zip(missing, ragged(column), strict=True)]
