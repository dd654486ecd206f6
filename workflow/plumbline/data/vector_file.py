"""Read word vectors in text format: GloVe, fastText `.vec` and word2vec text.

A line is a word and its values, separated by single spaces; fastText and word2vec begin with a line `words dimensions`.
"""

import os
from collections.abc import Collection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plumbline.errors import PlumblineError

PUBLISHERS = {
    "glove": "the Stanford GloVe page, https://nlp.stanford.edu/projects/glove/",
    "wiki-news": "fastText, https://fasttext.cc/docs/en/english-vectors.html",
    "wiki": "fastText, https://fasttext.cc/docs/en/pretrained-vectors.html",
    "crawl": "fastText, https://fasttext.cc/docs/en/english-vectors.html",
    "review+wiki": "Lei et al., http://people.csail.mit.edu/taolei/beer/",
    "cc.": "fastText, https://fasttext.cc/docs/en/crawl-vectors.html",
}


def missing_vectors(raw: Path, name: str) -> str | None:
    """The message about a file of vectors that is not under `raw`, with its publisher and target path."""
    if os.path.isfile(raw / name):
        return None
    file = Path(name).name.lower()
    publisher = next((name for prefix, name in PUBLISHERS.items() if file.startswith(prefix)), "their publisher")
    return (
        f"The word vectors '{name}' are not in the folder '{raw}': get them from {publisher} "
        f"and put them at '{raw / name}'."
    )


def read_vectors(raw: Path, name: str, vocabulary: Collection[str], dimensions: int) -> dict[str, NDArray[np.float32]]:
    """The vectors of the words of the vocabulary in the file `name` under `raw`, which is streamed."""
    path = raw / name
    if message := missing_vectors(raw, name):
        raise PlumblineError(message)
    declared: int | None = None
    found: dict[str, NDArray[np.float32]] = {}
    number = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            text = _decode(line, path, number)
            fields = text.split(" ") if number == 1 else []
            if len(fields) == 2 and all(field.isdecimal() for field in fields):
                declared = int(fields[0])
                _check_dimensions(int(fields[1]), dimensions, path)
                continue
            if number == 1:
                _check_dimensions(_trailing_numbers(fields), dimensions, path)
            word = _word(text, dimensions, path, number)
            if word in vocabulary and word not in found:
                found[word] = _values(text, dimensions, path, number)
    words = number - (declared is not None)
    if not words:
        raise PlumblineError(f"The word vectors '{path}' hold no word: the file is truncated, download it again.")
    if declared is not None and words < declared:
        raise PlumblineError(
            f"The word vectors '{path}' declare {declared} words in line 1 but end after {words}, in line {number}: "
            "the file is truncated, download it again."
        )
    return found


def _decode(line: bytes, path: Path, number: int) -> str:
    try:
        # fastText ends each line with a space.
        return line.decode("utf-8").rstrip(" \r\n")
    except UnicodeDecodeError:
        raise PlumblineError(
            f"The word vectors '{path}', line {number}, are not UTF-8 text: unpack the file if it is compressed, or "
            "download it again if it is damaged."
        ) from None


def _check_dimensions(found: int, dimensions: int, path: Path) -> None:
    if found != dimensions:
        raise PlumblineError(
            f"The word vectors '{path}', line 1, have {found} values per word, but `dimensions` of the embedding is "
            f"{dimensions}: set it to {found} or name another file."
        )


def _trailing_numbers(fields: list[str]) -> int:
    """The number of trailing numeric fields; the first field belongs to the word even if it is numeric."""
    count = 0
    for field in reversed(fields[1:]):
        try:
            float(field)
        except ValueError:
            break
        count += 1
    return count


def _word(text: str, dimensions: int, path: Path, number: int) -> str:
    spaces = text.count(" ")
    if spaces < dimensions:
        raise PlumblineError(
            f"The word vectors '{path}', line {number}, hold {spaces} values, not {dimensions}: the file is truncated "
            "or damaged, download it again."
        )
    # Words of GloVe 840B may contain spaces, so the word is all before the values. Counting is the fast path.
    return text[: text.index(" ")] if spaces == dimensions else text.rsplit(" ", dimensions)[0]


def _values(text: str, dimensions: int, path: Path, number: int) -> NDArray[np.float32]:
    try:
        vector = np.array([float(field) for field in text.rsplit(" ", dimensions)[1:]], dtype=np.float32)
    except ValueError:
        vector = np.array([np.nan], dtype=np.float32)
    if not np.isfinite(vector).all():
        raise PlumblineError(
            f"The word vectors '{path}', line {number}, hold a value that is not a finite number: the file is damaged, "
            "download it again."
        )
    return vector
