"""Instances in memory: ragged columns as lists of arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.errors import PlumblineError


def ragged(column: pa.ChunkedArray) -> list[np.ndarray]:
    """A list column as one array per row; the arrays are views of one buffer."""
    lists = column.combine_chunks()
    offsets = lists.offsets.to_numpy(zero_copy_only=False)
    values = lists.values.to_numpy(zero_copy_only=False)
    return [values[start:end] for start, end in pairwise(offsets)]


@dataclass(frozen=True)
class Instances:
    """Instances of some splits; `ids[i]` and `maskable[i]` have one entry per token, specials included.

    `pair[i]` are the ids of the second text of a paired input, such as a question; it is never masked.
    """

    split: np.ndarray
    instance: np.ndarray
    label: np.ndarray
    ids: list[np.ndarray]
    maskable: list[np.ndarray]
    pair: list[np.ndarray] | None = None

    @classmethod
    def from_table(cls, table: pa.Table, splits: Sequence[str]) -> "Instances":
        """The instances of the named splits, in the table's order."""
        absent = set(splits) - set(pc.unique(table["split"].cast(pa.string())).to_pylist())
        if absent:
            raise PlumblineError(f"The dataset has no split '{sorted(absent)[0]}'.")
        table = table.filter(pc.is_in(table["split"].cast(pa.string()), pa.array(splits)))
        return cls(
            split=np.array(table["split"].cast(pa.string()).to_pylist()),
            instance=table["instance"].to_numpy(),
            label=table["label"].to_numpy(),
            ids=ragged(table["ids"]),
            maskable=ragged(table["maskable"]),
        )

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, index: Sequence[int] | np.ndarray) -> "Instances":
        """The instances at these positions, in this order."""
        return Instances(
            self.split[index],
            self.instance[index],
            self.label[index],
            [self.ids[i] for i in index],
            [self.maskable[i] for i in index],
            None if self.pair is None else [self.pair[i] for i in index],
        )

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each instance, specials included."""
        return np.array([len(ids) for ids in self.ids], dtype=np.int64)
