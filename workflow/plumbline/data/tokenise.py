"""From running text to words: spaCy's, and the cleaners of Jain & Wallace (2019)."""

import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from plumbline.runtime.progress import shown

NUMBER = "qqq"
_BRACKETS = re.compile(r"-[LR]RB-")
_NOT_WORD = re.compile(r"\W")


def words(texts: Iterable[str], lowercase: bool = False) -> Iterator[list[str]]:
    """The words of each text, by spaCy's English tokeniser without a model; white space is collapsed first."""
    import spacy

    collapsed = [" ".join(text.split()) for text in texts]
    tokenizer: Any = spacy.blank("en").tokenizer
    documents = tokenizer.pipe(collapsed)
    for document in shown(documents, "tokenise", "text", len(collapsed)):
        yield [sys.intern(token.lower_ if lowercase else token.text) for token in document if not token.is_space]


def clean(texts: Iterable[str]) -> list[list[str]]:
    """The generic cleaner: collapse white space, tokenise, lowercase; a word that holds a digit becomes `qqq`."""
    return [[NUMBER if any(map(str.isdigit, word)) else word for word in text] for text in words(texts, True)]


def clean_treebank(texts: Iterable[str]) -> list[list[str]]:
    """The cleaner of SST: brackets and every character that is not of a word become spaces; digits stay."""
    return list(words((_NOT_WORD.sub(" ", _BRACKETS.sub(" ", text)) for text in texts), True))
