"""Instances in memory: ragged columns as lists of arrays."""

import random
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, NamedTuple

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


class Texts(NamedTuple):
    """The input of a model: texts, possibly with words removed.

    ids and maskable have one entry per token, special tokens included; pair holds the ids of second texts, such as
    questions, which are never masked; answers the candidate classes; pair_maskable which tokens of second texts are
    words. Instances have the same fields.
    """

    ids: list[np.ndarray]
    maskable: list[np.ndarray]
    pair: list[np.ndarray] | None = None
    answers: list[np.ndarray] | None = None
    pair_maskable: list[np.ndarray] | None = None


def take_rows(column: Sequence[np.ndarray] | None, index: Iterable[int]) -> list[np.ndarray] | None:
    """The entries of a column at these positions; None without a column."""
    return None if column is None else [column[i] for i in index]


def optional_ragged(column: pa.ChunkedArray) -> list[np.ndarray] | None:
    """A list column as arrays, or None if the dataset has none."""
    return None if column.null_count == len(column) else ragged(column)


def draw_sample(split: np.ndarray, count: int, seed: int) -> np.ndarray:
    """The sorted positions of at most `count` random entries of each split, sampled as in Neely et al. 2022."""
    drawn = []
    for name in dict.fromkeys(split.tolist()):
        positions = np.flatnonzero(split == name).tolist()
        drawn += random.Random(seed).sample(positions, min(count, len(positions)))
    return np.array(sorted(drawn), dtype=np.int64)


@dataclass(frozen=True)
class Instances:
    """Instances of some splits: the fields of `Texts` with split, number and label.

    groups, and pair_groups of second texts, number the manipulation's group of each token from 1; 0 is no group.
    evidence flags the tokens that the dataset marks as evidence.
    """

    split: np.ndarray
    instance: np.ndarray
    label: np.ndarray
    ids: list[np.ndarray]
    maskable: list[np.ndarray]
    pair: list[np.ndarray] | None = None
    answers: list[np.ndarray] | None = None
    pair_maskable: list[np.ndarray] | None = None
    groups: list[np.ndarray] | None = None
    pair_groups: list[np.ndarray] | None = None
    evidence: list[np.ndarray] | None = None

    @classmethod
    def from_table(cls, table: pa.Table, splits: Sequence[str]) -> "Instances":
        """The instances of the named splits, in the table's order."""
        missing = set(splits) - set(pc.unique(table["split"].cast(pa.string())).to_pylist())
        if missing:
            raise PlumblineError(f"The dataset has no split '{min(missing)}'.")
        table = table.filter(pc.is_in(table["split"].cast(pa.string()), pa.array(splits)))
        return cls(
            split=np.array(table["split"].cast(pa.string()).to_pylist()),
            instance=table["instance"].to_numpy(),
            label=table["label"].to_numpy(),
            ids=ragged(table["ids"]),
            maskable=ragged(table["maskable"]),
            pair=optional_ragged(table["ids_b"]),
            answers=optional_ragged(table["answers"]),
            pair_maskable=optional_ragged(table["maskable_b"]),
            groups=optional_ragged(table["groups"]),
            pair_groups=optional_ragged(table["groups_b"]),
            evidence=optional_ragged(table["evidence"]),
        )

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, index: Sequence[int] | np.ndarray) -> "Instances":
        """The instances at these positions, in this order."""
        columns = [getattr(self, field.name) for field in fields(self)]
        taken: list[Any] = [c[index] if isinstance(c, np.ndarray) else take_rows(c, index) for c in columns]
        return Instances(*taken)

    def at(self, keys: Iterable[tuple[str, int]]) -> "Instances":
        """The instances with these splits and numbers, in this order."""
        index = {key: i for i, key in enumerate(zip(self.split.tolist(), self.instance.tolist(), strict=True))}
        return self.take([index[key] for key in keys])

    def by_split(self) -> dict[str, "Instances"]:
        """The instances of each split."""
        return {split: self.take(np.flatnonzero(self.split == split)) for split in dict.fromkeys(self.split.tolist())}

    def pair_words(self, position: int) -> np.ndarray:
        """Which tokens of an instance's second text are words; all, if the dataset has no flags."""
        assert self.pair
        flags = self.pair_maskable
        return np.ones(len(self.pair[position]), dtype=bool) if flags is None else flags[position]

    def sampled(self, count: int | None, seed: int, whole: Iterable[str] = ()) -> "Instances":
        """At most `count` random instances of each split; all instances without a count, and in the `whole` splits."""
        if count is None:
            return self
        drawn = draw_sample(self.split, count, seed)
        return self.take(np.union1d(drawn, np.flatnonzero(np.isin(self.split, list(whole)))))

    def part(self, part: str) -> "Instances":
        """A part such as `2-of-3`: every third instance from the second on, so that parts have alike lengths."""
        first, number = map(int, part.split("-of-"))
        return self.take(np.arange(first - 1, len(self), number))

    def generator(self, position: int, seed: int, purpose: str = "") -> np.random.Generator:
        """The random generator of one instance, seed and purpose; it does not depend on order or batches."""
        split, number = str(self.split[position]), int(self.instance[position])
        key = [zlib.crc32(purpose.encode())] if purpose else []
        return np.random.default_rng([seed, zlib.crc32(split.encode()), number, *key])

    def ties(self, seed: int) -> list[np.ndarray]:
        """A random number for each word, which orders words of equal scores."""
        return [self.generator(i, seed, "ties").random(int(free.sum())) for i, free in enumerate(self.maskable)]

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each instance, specials included."""
        return np.array([len(ids) for ids in self.ids], dtype=np.int64)
