"""What a reader of pictures returns, and from there to instances, each of which is a text of pixels."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plumbline.config.recipes import Preparation
from plumbline.data.corpus import SPLITS
from plumbline.data.pixels import pack
from plumbline.data.prepare import Prepared, check_classes, check_place, fewer_than_published, per_class, sample_texts
from plumbline.errors import PlumblineError
from plumbline.registry import IMAGES

# What a recipe says of words, of which pictures have none.
OF_WORDS = ("minimum_document_frequency", "longer_than", "shorter_than", "together_shorter_than", "open_bound")
# More pixels do not fit into one column of a table.
MOST_PIXELS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ImageExample:
    """One picture of a dataset: `label` is an index into the classes of its corpus, `pixels` are bytes [H, W, 3]."""

    split: str
    label: int
    pixels: np.ndarray


@dataclass(frozen=True)
class ImageCorpus:
    """Pictures as their reader gives them. `dropped` counts those that it left out, by reason and split."""

    pictures: list[ImageExample]
    classes: list[str]
    dropped: dict[str, dict[str, int]] = field(default_factory=dict)


Numbered = tuple[int, ImageExample]


def prepare_images(
    corpus: ImageCorpus,
    recipe: Preparation,
    name: str,
    published: Mapping[str, int] | None = None,
    task: str | None = None,
) -> Prepared:
    """Sample the pictures and pack their pixels. `instance` counts inside the split, so that samples keep it.

    `published` says how many pictures the publisher's splits hold; `task` is, if given, what the dataset declares.
    """
    if task not in (None, IMAGES):
        raise PlumblineError(f"Dataset '{name}': its task is {task}, but it holds pictures; declare task='{IMAGES}'.")
    _check(corpus, recipe, name)
    pictures = {split: list(enumerate(p for p in corpus.pictures if p.split == split)) for split in SPLITS}
    found = {split: len(pictures[split]) for split in SPLITS}
    dropped = {reason: dict(counts) for reason, counts in corpus.dropped.items()}
    kept = {split: _keep(pictures[split], corpus, recipe, name, split, dropped) for split in SPLITS}
    side = corpus.pictures[0].pixels.shape[0]
    _check_room(sum(map(len, kept.values())), side, name)
    summary = {
        "dataset": name,
        "classes": list(corpus.classes),
        "splits": {split: _count(corpus, pictures[split], kept[split], side**2) for split in SPLITS},
        "dropped": dropped,
        "partial": fewer_than_published(found, published or {}, name, "pictures"),
        "paired": False,
        "vocabulary_size": 0,
        "seed": recipe.seed,
        "side": side,
    }
    return Prepared(_columns(kept, side**2), {"id": [], "word": [], "document_frequency": []}, summary)


def _check(corpus: ImageCorpus, recipe: Preparation, name: str) -> None:
    """Refuse a recipe for words, and pictures that are of no class, not square or not of one size."""
    usual = Preparation()
    for option in OF_WORDS:
        if getattr(recipe, option) != getattr(usual, option):
            raise PlumblineError(
                f"Dataset '{name}': `{option}` is about the words of texts, and pictures have none; leave it out."
            )
    check_classes(corpus.classes, name)
    for place, picture in enumerate(corpus.pictures):
        if not isinstance(picture, ImageExample):
            raise PlumblineError(
                f"Dataset '{name}', picture {place}: it is a {type(picture).__name__}; each must be an ImageExample."
            )
        where = f"Dataset '{name}', split '{picture.split}', picture {place}"
        check_place(picture.split, picture.label, corpus.classes, where, "picture")
        if not isinstance(picture.pixels, np.ndarray) or picture.pixels.dtype != np.uint8:
            raise PlumblineError(f"{where}: `pixels` must be a NumPy array of bytes (uint8), [height, width, 3].")
        side = corpus.pictures[0].pixels.shape[0]
        if picture.pixels.shape != (side, side, 3):
            raise PlumblineError(
                f"{where} has the shape {list(picture.pixels.shape)}, not [{side}, {side}, 3]; the dataset's reader "
                "must make all pictures square and of one size."
            )


def _keep(
    pictures: list[Numbered],
    corpus: ImageCorpus,
    recipe: Preparation,
    name: str,
    split: str,
    dropped: dict[str, dict[str, int]],
) -> list[Numbered]:
    """The pictures of a split that stay, of every class some; how many do not is added to `dropped`."""
    kept = sample_texts(pictures, recipe, SPLITS.index(split))
    steps = [
        (pictures, "", "the dataset's files or its reader lack it."),
        (kept, f" after the limit of {recipe.limit}", "raise `limit`."),
    ]
    for left, after, advice in steps:
        counts = per_class((picture.label for _, picture in left), corpus.classes)
        for class_, count in counts.items():
            if not count:
                raise PlumblineError(
                    f"Dataset '{name}', split '{split}' holds no picture of class '{class_}'{after}: {advice}"
                )
    if len(kept) < len(pictures):
        dropped.setdefault("limit", {})[split] = len(pictures) - len(kept)
    return kept


def _check_room(count: int, side: int, name: str) -> None:
    if count * side**2 > MOST_PIXELS:
        raise PlumblineError(
            f"Dataset '{name}' holds {count} pictures of {side} x {side} pixels, and a table holds no more than "
            f"{MOST_PIXELS} pixels; make them smaller or set `limit`."
        )


def _count(corpus: ImageCorpus, pictures: list[Numbered], kept: list[Numbered], pixels: int) -> dict[str, Any]:
    """The same record as that of texts; the words of a picture are its pixels, none of which is unknown."""
    return {
        "texts": len(pictures),
        "instances": len(kept),
        "texts_per_class": per_class((picture.label for _, picture in pictures), corpus.classes),
        "instances_per_class": per_class((picture.label for _, picture in kept), corpus.classes),
        "mean_length": float(pixels),
        "shortest": pixels,
        "longest": pixels,
        "unknown_share": 0.0,
    }


def _columns(kept: dict[str, list[Numbered]], pixels: int) -> dict[str, list[Any]]:
    rows = [(split, number, picture) for split in SPLITS for number, picture in kept[split]]
    # One array for all: every pixel of every picture may be masked.
    every = np.ones(pixels, dtype=bool)
    return {
        "split": [split for split, _, _ in rows],
        "instance": [number for _, number, _ in rows],
        "label": [picture.label for _, _, picture in rows],
        "tokens": [[] for _ in rows],
        "ids": [pack(picture.pixels) for _, _, picture in rows],
        "maskable": [every] * len(rows),
    }
