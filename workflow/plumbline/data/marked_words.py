"""Evidence in a column of the user's own table: a flag for each word, or spans of characters."""

import json
import re
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

Span = tuple[int, int]
_WORD = re.compile(r"\S+")


def read_spans(value: Any, text: str, form: str) -> list[Span]:
    """The marked spans [start, end) of a text; ValueError says what is wrong with the value."""
    if value is None or value == "":
        return []
    return _flagged(value, text) if form == "flags" else _spans(value, text)


def _flagged(value: Any, text: str) -> list[Span]:
    """The words between white space with the flag 1, from a list or from text such as ``0 1 1``."""
    flags = [*map(str, value)] if isinstance(value, list) else str(value).strip(" []").replace(",", " ").split()
    words = [match.span() for match in _WORD.finditer(text)]
    flags = [{"True": "1", "False": "0"}.get(flag, flag) for flag in flags]
    if not set(flags) <= {"0", "1"}:
        raise ValueError(f"holds '{min(set(flags) - {'0', '1'})}' instead of flags 0 or 1, one for each word")
    if len(flags) != len(words):
        raise ValueError(f"holds {len(flags)} flags, but the text has {len(words)} words separated by white space")
    return [word for word, flag in zip(words, flags, strict=True) if flag == "1"]


def _spans(value: Any, text: str) -> list[Span]:
    """Pairs of the first character and the one after the last, from lists or from text such as ``[[0, 4], [9, 12]]``"""
    try:
        pairs = [(start, end) for start, end in (json.loads(value) if isinstance(value, str) else value)]
    except (ValueError, TypeError):
        raise ValueError("is not a list of [start, end], such as [[0, 4], [9, 12]]") from None
    for start, end in pairs:
        if not (isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(text)):
            raise ValueError(f"holds the span [{start}, {end}], which is not inside the text of {len(text)} characters")
    return pairs


def flag_words(words: Sequence[str], text: str, spans: Iterable[Span]) -> list[bool]:
    """Whether each word overlaps a span; the words are all of the text's, in order and without its white space."""
    marked = [False] * len(text)
    for start, end in spans:
        marked[start:end] = [True] * (end - start)
    visible = [flag for flag, character in zip(marked, text, strict=True) if not character.isspace()]
    ends = accumulate(map(len, words))
    return [any(visible[end - len(word) : end]) for word, end in zip(words, ends, strict=True)]
