"""Manipulations of texts and of pictures."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from plumbline.conformance.declarations import check_documentation, default_options
from plumbline.conformance.examples import CLASSES, SIDE
from plumbline.conformance.notes import type_name
from plumbline.data.manipulation import ChangedText, ImageManipulation, InstanceWords
from plumbline.registry import Declaration, load


def check_manipulation(declaration: Declaration) -> Iterator[str]:
    """A manipulation says of each word or pixel what group it is in, and changes nothing outside of its groups."""
    yield from check_documentation(declaration, "groups", "equation")
    if declaration.visibility and declaration.visibility not in declaration.options:
        yield f"its visibility is '{declaration.visibility}', which is none of its options."
    check = _check_of_pictures if declaration.reads == "pixels" else _check_of_texts
    # The same may be wrong of many texts.
    yield from dict.fromkeys(check(declaration, load(declaration.pointer), default_options(declaration)))


def _check_of_texts(declaration: Declaration, function: Any, options: dict[str, Any]) -> Iterator[str]:
    texts = [["the", "film", "was", "a", "dull", "one"], ["an", "old", "man"], ["good"], ["A", "word", "and", "the"]]
    for label, first, second in product(range(CLASSES), texts, (texts[1], None)):
        given, copy = (InstanceWords([*first], second and [*second]) for _ in range(2))
        change, again = (function(text, label, np.random.default_rng(0), **options) for text in (given, copy))
        if not isinstance(change, ChangedText):
            yield f"it returns {type_name(change)}; end with `return ChangedText(words, groups)`."
            return
        if given != InstanceWords(first, second):
            yield "it writes into the words that it is given; make new lists."
        if change != again:
            yield "it gives something else when it is run again; draw from its `random` alone."
        if second is None and change.second is not None:
            yield "it gives a second text where there is none."
        yield from _check_change(declaration, (first, second or []), change, options)


def _check_change(
    declaration: Declaration, texts: tuple[list[str], list[str]], change: ChangedText, options: dict[str, Any]
) -> Iterator[str]:
    for before, after, groups in zip(texts, change[::2], change[1::2], strict=True):
        if after is None or groups is None:
            # What says nothing of the second text leaves it as it is.
            continue
        if len(after) != len(groups):
            yield f"it gives {len(groups)} groups for {len(after)} words; give each word the number of its group, or 0."
        elif not set(groups) <= set(range(len(declaration.groups) + 1)):
            yield f"it gives groups beyond the {len(declaration.groups)} that it names."
        elif set(after) - {*declaration.words, *options.get("tokens", []), *before}:
            yield "it puts words into texts that it does not name as `words`."
        elif [w for w, g in zip(after, groups, strict=True) if not g and w not in before]:
            yield "it changes words that it says are in no group."


def _check_of_pictures(declaration: Declaration, function: Any, options: dict[str, Any]) -> Iterator[str]:
    for size in (SIDE, 3 * SIDE):
        made = function(size, **options)
        if not isinstance(made, ImageManipulation):
            yield f"it returns {type_name(made)}; end with `return ImageManipulation(region, change)`."
            return
        if made.region.shape != (size, size) or made.region.dtype != bool or not made.region.any():
            yield f"its region came as {made.region.dtype} {made.region.shape}, or empty, for pictures of side {size}."
            return
        picture = np.random.default_rng(1).integers(256, size=(size, size, 3), dtype=np.uint8)
        before = picture.copy()
        change, again = (made.change(picture, np.random.default_rng(0)) for _ in range(2))
        if not np.array_equal(picture, before):
            yield "it writes into the picture that it is given."
        if change.shape != picture.shape or change.dtype != np.uint8:
            yield f"it gives pictures of {change.dtype} {change.shape}."
        elif not np.array_equal(change, again):
            yield "it gives something else when it is run again."
        elif not np.array_equal(change[~made.region], before[~made.region]):
            yield "it changes pixels outside of its region."
