"""The corpus that a dataset's reader returns: tokenized texts, each with its split and label."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from plumbline.errors import PlumblineError

SPLITS = ("train", "dev", "test")
T = TypeVar("T")
# Numbers of texts that were left out, by reason and split.
Dropped = dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Example:
    """One text of a dataset. `label` is an index into the classes of its corpus.

    `pair` is a second text, such as a question. `answers` are the candidate classes, if not all are. `evidence` flags
    the words of the part that holds the answer, where it is known.
    """

    split: str
    label: int
    tokens: list[str]
    pair: list[str] | None = None
    answers: list[int] | None = None
    evidence: list[bool] | None = None


@dataclass(frozen=True)
class Corpus:
    """A dataset before vocabulary, filters and word vectors.

    `vocabulary` holds words that enter the vocabulary however rare they are. `dropped` counts the texts that the reader
    left out, by reason and split (`all` where texts had no split yet). `every_class` requires every class in each
    split, which answers to questions need not fulfil. `drawn` says how splits were drawn, if they were, for the record.
    """

    examples: list[Example]
    classes: list[str]
    vocabulary: list[str] | None = None
    dropped: Dropped = field(default_factory=dict)
    every_class: bool = True
    drawn: dict[str, Any] = field(default_factory=dict)


def split_by_seed(n: int, shares: Mapping[str, float], seed: int | Sequence[int]) -> list[str]:
    """The random split of each of `n` texts; the last split takes the remainder of rounding.

    The seed is the `seed` of the preparation recipe, which `prepare` records.
    """
    names = list(shares)
    edges = np.floor(np.cumsum(list(shares.values())) / sum(shares.values()) * n + 0.5).astype(int)
    rank = np.empty(n, dtype=int)
    rank[np.random.default_rng(seed).permutation(n)] = np.arange(n)
    return [names[k] for k in np.searchsorted(edges, rank, side="right")]


def split_generators(seed: int, train: int, dev: int, test: int) -> Iterator[tuple[str, int, np.random.Generator]]:
    """Name, size and random generator of each split, so that no split depends on the size of another."""
    for index, (split, size) in enumerate(zip(SPLITS, (train, dev, test), strict=True)):
        yield split, size, np.random.default_rng([seed, index])


def hold_out(
    items: Sequence[T], share: float, seed: int, classes: Sequence[int] | None = None
) -> tuple[list[T], list[T]]:
    """The items kept and held out by scikit-learn's `train_test_split`, stratified by `classes` if given."""
    if len(items) < 2:
        raise PlumblineError(
            f"A split needs two or more texts, but the files contain {len(items)}: download them again."
        )
    from sklearn.model_selection import train_test_split

    kept, held = train_test_split(list(items), test_size=share, random_state=seed, stratify=classes)
    return kept, held


def stratified_splits(labels: Sequence[int], test: tuple[float, int], dev: tuple[float, int]) -> list[str]:
    """The split of each text, stratified by label; `test` and `dev` are (share, seed), dev's a share of the rest."""
    rest, held_test = hold_out(range(len(labels)), *test, labels)
    held_dev = hold_out(rest, *dev, [labels[k] for k in rest])[1]
    split_of = dict.fromkeys(held_test, "test") | dict.fromkeys(held_dev, "dev")
    return [split_of.get(k, "train") for k in range(len(labels))]


def draw_dev(examples: Sequence[Example]) -> list[Example]:
    """Move 15% of the training texts to dev, the same ones as Jain & Wallace's code."""
    training = [k for k, example in enumerate(examples) if example.split == "train"]
    dev = set(hold_out(training, 0.15, 16377)[1])
    return [replace(example, split="dev") if k in dev else example for k, example in enumerate(examples)]
