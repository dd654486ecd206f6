"""Tokenization by spaCy, and the cleaners of Jain & Wallace (2019)."""

import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from plumbline.runtime.progress import shown

NUMBER = "qqq"
_BRACKETS = re.compile(r"-[LR]RB-")
_NOT_WORD = re.compile(r"\W")


def words(texts: Iterable[str], lowercase: bool = False) -> Iterator[list[str]]:
    """The words of each text by spaCy's English tokenizer without a model; white space is collapsed first."""
    import spacy

    collapsed = [" ".join(text.split()) for text in texts]
    tokenizer: Any = spacy.blank("en").tokenizer
    for document in shown(tokenizer.pipe(collapsed), "tokenize", "text", len(collapsed)):
        yield [sys.intern(token.lower_ if lowercase else token.text) for token in document if not token.is_space]


def clean(texts: Iterable[str]) -> list[list[str]]:
    """The generic cleaner: collapse white space, tokenize, lowercase; a word with a digit becomes `qqq`."""
    return [clean_words(text) for text in words(texts)]


def clean_words(text: Iterable[str]) -> list[str]:
    """The same for a text that is already tokenized."""
    return [NUMBER if any(map(str.isdigit, word)) else sys.intern(word.lower()) for word in text]


def clean_treebank(texts: Iterable[str]) -> list[list[str]]:
    """The cleaner of SST: brackets and all other non-word characters become spaces; digits are kept."""
    return list(words((_NOT_WORD.sub(" ", _BRACKETS.sub(" ", text)) for text in texts), True))
