"""What a dataset's reader returns: texts as words, each with its split and label."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

SPLITS = ("train", "dev", "test")


@dataclass(frozen=True, slots=True)
class Example:
    """One text of a dataset. `label` is an index into the classes of its corpus.

    `pair` is a second text, such as a question. `answers` are the classes that may be the answer, if not all may.
    `evidence` says of each word whether it stands in the part that holds the answer, where that is known.
    """

    split: str
    label: int
    tokens: list[str]
    pair: list[str] | None = None
    answers: list[int] | None = None
    evidence: list[bool] | None = None


@dataclass(frozen=True)
class Corpus:
    """A dataset as its reader gives it, before vocabulary, filters and word vectors.

    `vocabulary` holds words that are in the vocabulary however rare they are. `dropped` counts the texts that the
    reader left out, by reason and split (`all` where texts had no split yet). `every_class` says that each split must
    hold every class; answers to questions need not.
    """

    examples: list[Example]
    classes: list[str]
    vocabulary: list[str] | None = None
    dropped: dict[str, dict[str, int]] = field(default_factory=dict)
    every_class: bool = True


def split_by_seed(n: int, shares: Mapping[str, float], seed: int) -> list[str]:
    """The split of each of `n` texts, drawn without replacement; the last split takes what rounding leaves over.

    The seed is the `seed` of the preparation recipe, which `prepare` records.
    """
    names = list(shares)
    edges = np.floor(np.cumsum(list(shares.values())) / sum(shares.values()) * n + 0.5).astype(int)
    place_of = np.empty(n, dtype=int)
    place_of[np.random.default_rng(seed).permutation(n)] = np.arange(n)
    return [names[k] for k in np.searchsorted(edges, place_of, side="right")]
