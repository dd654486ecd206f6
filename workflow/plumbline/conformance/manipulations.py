"""Checks of manipulations of texts and images."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from plumbline.conformance.declarations import check_documentation
from plumbline.conformance.examples import CLASSES, SIDE
from plumbline.conformance.notes import type_name
from plumbline.data.manipulation import ChangedText, ImageManipulation, InstanceWords
from plumbline.registry import Declaration, load


def check_manipulation(declaration: Declaration) -> Iterator[str]:
    """A manipulation assigns words or pixels to groups, and changes nothing outside of them."""
    yield from check_documentation(declaration, "groups", "equation")
    if declaration.visibility and declaration.visibility not in declaration.options:
        yield f"its visibility is '{declaration.visibility}', which is not one of its options."
    if declaration.suffices not in ("all", "any"):
        yield f"its declaration states suffices={declaration.suffices!r}; it must be 'all' or 'any'."
    check = _check_images if declaration.reads == "pixels" else _check_texts
    # Many texts may have the same fault.
    yield from dict.fromkeys(check(declaration, load(declaration.pointer), declaration.defaults))


def _check_texts(declaration: Declaration, function: Any, options: dict[str, Any]) -> Iterator[str]:
    texts = [["the", "film", "was", "a", "dull", "one"], ["an", "old", "man"], ["good"], ["A", "word", "and", "the"]]
    for label, first, second in product(range(CLASSES), texts, (texts[1], None)):
        text, copy = (InstanceWords([*first], second and [*second]) for _ in range(2))
        change, again = (function(words, label, np.random.default_rng(0), **options) for words in (text, copy))
        if not isinstance(change, ChangedText):
            yield f"it returns {type_name(change)}; end with `return ChangedText(words, groups)`."
            return
        if text != InstanceWords(first, second):
            yield "it modifies its input words; return new lists."
        if change != again:
            yield "its texts differ between runs; draw random numbers only from `random`."
        if second is None and change.second is not None:
            yield "it returns a second text for an instance without one."
        yield from _check_change(declaration, (first, second or []), change, options)


def _check_change(
    declaration: Declaration, texts: tuple[list[str], list[str]], change: ChangedText, options: dict[str, Any]
) -> Iterator[str]:
    for before, after, groups in zip(texts, change[::2], change[1::2], strict=True):
        if after is None or groups is None:
            # None leaves the second text unchanged.
            continue
        if len(after) != len(groups):
            yield f"it returns {len(groups)} groups for {len(after)} words; return the group index, or 0, of each word."
        elif not set(groups) <= set(range(len(declaration.groups) + 1)):
            yield f"it returns a group index above {len(declaration.groups)}, the number of its groups."
        elif set(after) - {*declaration.words, *options.get("tokens", []), *before}:
            yield "it inserts words that are not in its declared `words`."
        elif [w for w, g in zip(after, groups, strict=True) if not g and w not in before]:
            yield "it changes words that are in no group."


def _check_images(declaration: Declaration, function: Any, options: dict[str, Any]) -> Iterator[str]:
    for size in (SIDE, 3 * SIDE):
        manipulation = function(size, **options)
        if not isinstance(manipulation, ImageManipulation):
            yield f"it returns {type_name(manipulation)}; end with `return ImageManipulation(region, change)`."
            return
        region = manipulation.region
        if region.shape != (size, size) or region.dtype != bool or not region.any():
            yield f"its region is {region.dtype} {region.shape} or empty, not bool ({size}, {size})."
            return
        image = np.random.default_rng(1).integers(256, size=(size, size, 3), dtype=np.uint8)
        before = image.copy()
        change, again = (manipulation.change(image, np.random.default_rng(0)) for _ in range(2))
        if not np.array_equal(image, before):
            yield "it modifies its input image; return a new array."
        if change.shape != image.shape or change.dtype != np.uint8:
            yield f"it returns images of {change.dtype} {change.shape}, not uint8 {image.shape}."
        elif not np.array_equal(change, again):
            yield "its images differ between runs; draw random numbers only from `random`."
        elif not np.array_equal(change[~region], before[~region]):
            yield "it changes pixels outside of its region."
