"""Instances in memory: ragged columns as lists of arrays."""

import random
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

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
    """What a model reads, text by text, such as texts with words left out.

    ids and maskable have one entry per token, specials included; pair holds the ids of second texts, such as questions,
    which are never masked; answers the classes that may be the answer; pair_maskable which tokens of second texts are
    words. Instances are texts too.
    """

    ids: list[np.ndarray]
    maskable: list[np.ndarray]
    pair: list[np.ndarray] | None = None
    answers: list[np.ndarray] | None = None
    pair_maskable: list[np.ndarray] | None = None


def taken(column: Sequence[np.ndarray] | None, index: Iterable[int]) -> list[np.ndarray] | None:
    """The entries of a column at these positions; None where there is no column."""
    return None if column is None else [column[i] for i in index]


def optional(column: pa.ChunkedArray) -> list[np.ndarray] | None:
    """A list column that only some datasets have."""
    return None if column.null_count == len(column) else ragged(column)


def sample(split: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Positions, in order, of at most `count` entries of each split, drawn as Neely et al. 2022 draw them."""
    drawn = []
    for name in dict.fromkeys(split.tolist()):
        places = np.flatnonzero(split == name).tolist()
        drawn += random.Random(seed).sample(places, min(count, len(places)))
    return np.array(sorted(drawn), dtype=np.int64)


@dataclass(frozen=True)
class Instances:
    """Instances of some splits: what a model reads, as in `Texts`, with split, number and label.

    groups, and pair_groups of second texts, number the group of each token where a manipulation has made some, from 1;
    0 is none.
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
            pair=optional(table["ids_b"]),
            answers=optional(table["answers"]),
            pair_maskable=optional(table["maskable_b"]),
            groups=optional(table["groups"]),
            pair_groups=optional(table["groups_b"]),
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
            taken(self.pair, index),
            taken(self.answers, index),
            taken(self.pair_maskable, index),
            taken(self.groups, index),
            taken(self.pair_groups, index),
        )

    def by_split(self) -> dict[str, "Instances"]:
        """The instances of each split."""
        return {split: self.take(np.flatnonzero(self.split == split)) for split in dict.fromkeys(self.split.tolist())}

    def pair_words(self, place: int) -> np.ndarray:
        """Which tokens of an instance's second text are words; all, if it is not said."""
        assert self.pair
        return np.ones(len(self.pair[place]), dtype=bool) if self.pair_maskable is None else self.pair_maskable[place]

    def sampled(self, count: int | None, seed: int, whole: Iterable[str] = ()) -> "Instances":
        """At most `count` instances of each split, drawn by the seed; all without a number, and of `whole` splits."""
        if count is None:
            return self
        drawn = sample(self.split, count, seed)
        return self.take(np.union1d(drawn, np.flatnonzero(np.isin(self.split, list(whole)))))

    def generator(self, place: int, seed: int, purpose: str = "") -> np.random.Generator:
        """A stream of random numbers of one instance and seed, whatever the order and the batch it is met in; each
        purpose has its own."""
        split, number = str(self.split[place]), int(self.instance[place])
        own = [zlib.crc32(purpose.encode())] if purpose else []
        return np.random.default_rng([seed, zlib.crc32(split.encode()), number, *own])

    def ties(self, seed: int) -> list[np.ndarray]:
        """A random number for each word, by which those with equal scores are put in an order."""
        return [self.generator(i, seed, "ties").random(int(free.sum())) for i, free in enumerate(self.maskable)]

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each instance, specials included."""
        return np.array([len(ids) for ids in self.ids], dtype=np.int64)
