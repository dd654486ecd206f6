"""What a dataset's reader returns: texts as words, each with its split and label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from plumbline.errors import PlumblineError

SPLITS = ("train", "dev", "test")
T = TypeVar("T")


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


def hold_out(
    items: Sequence[T], share: float, seed: int, classes: Sequence[int] | None = None
) -> tuple[list[T], list[T]]:
    """What stays and what is held out, as scikit-learn's `train_test_split` draws it; evenly of `classes` if given."""
    if len(items) < 2:
        raise PlumblineError(
            f"A split cannot be drawn of fewer than two texts, and the files hold {len(items)}: get them again."
        )
    from sklearn.model_selection import train_test_split

    stays, held = train_test_split(list(items), test_size=share, random_state=seed, stratify=classes)
    return stays, held


def draw_dev(examples: Sequence[Example]) -> list[Example]:
    """Move 15% of the training texts to dev, the ones that Jain & Wallace's code draws."""
    training = [place for place, example in enumerate(examples) if example.split == "train"]
    dev = set(hold_out(training, 0.15, 16377)[1])
    return [replace(example, split="dev") if place in dev else example for place, example in enumerate(examples)]
