"""Turn an image corpus into instances, each of which is a sequence of pixels."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plumbline.config.recipes import Preparation
from plumbline.data.corpus import SPLITS, Dropped
from plumbline.data.pixels import pack
from plumbline.data.prepare import (
    Prepared,
    apply_limit,
    check_classes,
    check_split_and_label,
    count_per_class,
    fewer_than_published,
    summarize_split,
)
from plumbline.errors import PlumblineError
from plumbline.registry import IMAGES

# Options of a recipe that apply to words only.
OF_WORDS = ("minimum_document_frequency", "longer_than", "shorter_than", "together_shorter_than", "open_bound")
# The most pixels that fit into one column of a table.
MOST_PIXELS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ImageExample:
    """One image of a dataset: `label` is an index into the classes of its corpus, `pixels` are bytes [H, W, 3]."""

    split: str
    label: int
    pixels: np.ndarray


@dataclass(frozen=True)
class ImageCorpus:
    """The images that a reader returns. `dropped` counts those that it left out, by reason and split; `drawn` says how
    splits were drawn, if they were."""

    images: list[ImageExample]
    classes: list[str]
    dropped: Dropped = field(default_factory=dict)
    drawn: dict[str, Any] = field(default_factory=dict)


Numbered = tuple[int, ImageExample]


def prepare_images(
    corpus: ImageCorpus,
    recipe: Preparation,
    name: str,
    published: Mapping[str, int] | None = None,
    task: str | None = None,
) -> Prepared:
    """Sample the images and pack their pixels. `instance` numbers the images of a split before sampling.

    `published` is the size of each published split; `task` is, if given, the task that the dataset declares.
    """
    if task not in (None, IMAGES):
        raise PlumblineError(
            f"Dataset '{name}': its task is {task}, but it consists of images; declare task='{IMAGES}'."
        )
    _check(corpus, recipe, name)
    images = {split: list(enumerate(p for p in corpus.images if p.split == split)) for split in SPLITS}
    dropped = {reason: dict(counts) for reason, counts in corpus.dropped.items()}
    kept = {split: _keep(images[split], corpus, recipe, name, split, dropped) for split in SPLITS}
    side = corpus.images[0].pixels.shape[0]
    count = sum(map(len, kept.values()))
    if count * side**2 > MOST_PIXELS:
        raise PlumblineError(
            f"Dataset '{name}' holds {count} images of {side} x {side} pixels, but a table can store no more than "
            f"{MOST_PIXELS} pixels; make them smaller or set `limit`."
        )
    summary = {
        "dataset": name,
        "classes": list(corpus.classes),
        "splits": {split: _summarize(corpus, images[split], kept[split], side**2) for split in SPLITS},
        "dropped": dropped,
        "partial": fewer_than_published({s: len(images[s]) for s in SPLITS}, published or {}, name, "images"),
        "paired": False,
        "evidence": "",
        "vocabulary_size": 0,
        "seed": recipe.seed,
        "side": side,
        **({"drawn": corpus.drawn} if corpus.drawn else {}),
    }
    return Prepared(_columns(kept, side**2), {"id": [], "word": [], "document_frequency": []}, summary)


def _check(corpus: ImageCorpus, recipe: Preparation, name: str) -> None:
    """Refuse a recipe with options for words, and images of unknown classes or of different or oblong shapes."""
    for option in OF_WORDS:
        if getattr(recipe, option) != getattr(Preparation(), option):
            raise PlumblineError(
                f"Dataset '{name}': `{option}` applies to the words of texts, but images have none; leave it out."
            )
    check_classes(corpus.classes, name)
    for index, image in enumerate(corpus.images):
        if not isinstance(image, ImageExample):
            raise PlumblineError(
                f"Dataset '{name}', image {index}: it is a {type(image).__name__}; each must be an ImageExample."
            )
        where = f"Dataset '{name}', split '{image.split}', image {index}"
        check_split_and_label(image.split, image.label, corpus.classes, where)
        if not isinstance(image.pixels, np.ndarray) or image.pixels.dtype != np.uint8:
            raise PlumblineError(f"{where}: `pixels` must be a NumPy array of bytes (uint8), [height, width, 3].")
        side = corpus.images[0].pixels.shape[0]
        if image.pixels.shape != (side, side, 3):
            raise PlumblineError(
                f"{where} has the shape {list(image.pixels.shape)}, not [{side}, {side}, 3]; the dataset's reader "
                "must make all images square and of one size."
            )


def _keep(
    images: list[Numbered], corpus: ImageCorpus, recipe: Preparation, name: str, split: str, dropped: Dropped
) -> list[Numbered]:
    """The images of a split after sampling; the number of the others is added to `dropped`."""
    kept = apply_limit(images, recipe, split)
    steps = [
        (images, ": the dataset's files or its reader lack it."),
        (kept, f" after the limit of {recipe.limit}: raise `limit`."),
    ]
    for left, advice in steps:
        for class_, count in count_per_class((image.label for _, image in left), corpus.classes).items():
            if not count:
                raise PlumblineError(f"Dataset '{name}', split '{split}' holds no image of class '{class_}'{advice}")
    if len(kept) < len(images):
        dropped.setdefault("limit", {})[split] = len(images) - len(kept)
    return kept


def _summarize(corpus: ImageCorpus, images: list[Numbered], kept: list[Numbered], pixels: int) -> dict[str, Any]:
    """The same summary as that of texts; the words of an image are its pixels, none of which is unknown."""
    before, after = (count_per_class((image.label for _, image in rows), corpus.classes) for rows in (images, kept))
    return {**summarize_split(before, after, [pixels] * len(kept)), "unknown_share": 0.0}


def _columns(kept: dict[str, list[Numbered]], pixels: int) -> dict[str, list[Any]]:
    rows = [(split, number, image) for split in SPLITS for number, image in kept[split]]
    # One array for all: every pixel of every image may be masked.
    every = np.ones(pixels, dtype=bool)
    return {
        "split": [split for split, _, _ in rows],
        "instance": [number for _, number, _ in rows],
        "label": [image.label for _, _, image in rows],
        "tokens": [[] for _ in rows],
        "ids": [pack(image.pixels) for _, _, image in rows],
        "maskable": [every] * len(rows),
    }
