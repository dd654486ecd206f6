"""Texts in memory as instances of a study: their labels, second texts and marked words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from plumbline.config.own_data import label_text
from plumbline.data.corpus import Corpus, Example
from plumbline.data.marked_words import flag_words, read_spans
from plumbline.data.own_texts import TextOptions, tokenize_texts
from plumbline.errors import PlumblineError, nearest

Words = Literal["spaces", "cleaned", "cased"]
EvidenceSource = Literal["human", "rule"]
# The split of texts that are explained.
EXPLAINED = "test"


@dataclass(frozen=True)
class LabelledTexts:
    """Texts, possibly with second texts, the class of each, and the marked words of each if given.

    Texts that are not `labelled` are all of the first class.
    """

    texts: list[str]
    pairs: list[str] | None
    labels: list[int]
    classes: list[str]
    evidence: list[list[int]] | None = None
    evidence_source: EvidenceSource = "human"
    words: Words = "spaces"
    labelled: bool = True

    def divide(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of texts, as the option `words` defines them."""
        return tokenize_texts(texts, TextOptions(tokens=self.words))[1]

    def corpus(self) -> Corpus:
        """The corpus that `prepare` turns into instances; it need not have texts of every class."""
        divided = self.divide(self.texts)
        pairs: Sequence[list[str] | None] = self.divide(self.pairs) if self.pairs else [None] * len(divided)
        examples = [
            Example(EXPLAINED, label, words, pair, None, flags)
            for label, words, pair, flags in zip(self.labels, divided, pairs, self._flags(), strict=True)
        ]
        return Corpus(examples, self.classes, every_class=False)

    def _flags(self) -> Sequence[list[bool] | None]:
        """Whether each word is evidence; `evidence` has a flag for each word between white space."""
        if self.evidence is None:
            return [None] * len(self.texts)
        cased = tokenize_texts(self.texts, TextOptions(tokens=self.words))[0]
        rows = []
        for i, (text, flags, words) in enumerate(zip(self.texts, self.evidence, cased, strict=True)):
            try:
                rows.append(flag_words(words, text, read_spans(flags, text, "flags")))
            except ValueError as error:
                raise PlumblineError(f"`evidence` of text {i} {error}.") from None
        return rows

    def rows(self, split: str) -> list[dict[str, Any]]:
        """The rows of a table with these texts."""
        optional = {"pair": self.pairs, "evidence": self.evidence}
        columns = {name: column for name, column in optional.items() if column is not None}
        return [
            {"text": text, "label": self.classes[self.labels[i]], "split": split}
            | {name: column[i] for name, column in columns.items()}
            for i, text in enumerate(self.texts)
        ]


def read_texts(
    texts: Any,
    labels: Any,
    classes: Sequence[str],
    words: Words = "spaces",
    evidence: Any = None,
    evidence_source: EvidenceSource = "human",
) -> LabelledTexts:
    """Check the texts, or pairs of texts, and their labels, which are numbers of classes or their names."""
    rows = _listed(texts, "texts")
    if not rows:
        raise PlumblineError("`texts` is empty; give one text or more.")
    paired = not isinstance(rows[0], str)
    for i, row in enumerate(rows):
        parts = [row] if isinstance(row, str) else row
        if not isinstance(parts, Sequence) or not all(isinstance(part, str) for part in parts):
            raise PlumblineError(f"`texts[{i}]` is a {type(row).__name__}; each must be a string or a pair of strings.")
        if len(parts) != 1 + paired:
            raise PlumblineError(f"`texts[{i}]` has {len(parts)} texts; all must be single texts, or all pairs.")
        if not all(part.strip() for part in parts):
            raise PlumblineError(f"`texts[{i}]` has no words; remove it.")
    if len(classes) < 2:
        raise PlumblineError(f"The model has {len(classes)} class; an explained model needs two or more.")
    return LabelledTexts(
        [row[0] for row in rows] if paired else rows,
        [row[1] for row in rows] if paired else None,
        [0] * len(rows) if labels is None else _labels(labels, classes, len(rows)),
        list(classes),
        None if evidence is None else [[int(flag) for flag in flags] for flags in _of_each(evidence, "evidence", rows)],
        evidence_source,
        words,
        labels is not None,
    )


def _listed(values: Any, name: str) -> list[Any]:
    if values is None or isinstance(values, str | bytes | dict) or not hasattr(values, "__iter__"):
        raise PlumblineError(f"`{name}` must be a list, not {type(values).__name__}.")
    if isinstance(values, pd.DataFrame):
        raise PlumblineError(f"`{name}` is a DataFrame; give one of its columns, such as frame['{values.columns[0]}'].")
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _of_each(values: Any, name: str, rows: Sequence[Any]) -> list[Any]:
    """A list with one entry for each text."""
    listed = _listed(values, name)
    if len(listed) != len(rows):
        raise PlumblineError(
            f"`{name}` has the length {len(listed)}, but there are {len(rows)} texts; give one entry for each text."
        )
    return listed


def _labels(labels: Any, classes: Sequence[str], count: int) -> list[int]:
    """The number of each label's class."""
    numbers = []
    for i, label in enumerate(_of_each(labels, "labels", range(count))):
        if isinstance(label, int | np.integer) and not isinstance(label, bool):
            if not 0 <= label < len(classes):
                raise PlumblineError(
                    f"`labels[{i}]` is {label}, but the model has {len(classes)} classes, numbered from 0."
                )
            numbers.append(int(label))
        elif label_text(label) in classes:
            numbers.append(list(classes).index(label_text(label)))
        else:
            raise PlumblineError(
                f"`labels[{i}]` is {label!r}, which is neither the name nor the index of a class of the model; "
                f"{nearest(str(label), classes)}"
            )
    return numbers


def align_scores(scores: Any, name: str, words: Sequence[np.ndarray], lengths: Sequence[int]) -> list[np.ndarray]:
    """One's own scores, one for each subword of every text.

    `words` holds the index of each subword's word, `lengths` the number of words of each text. Where there is one score
    for each word, each of its subwords gets it.
    """
    aligned = []
    where = f"importances['{name}']"
    for i, (row, word, length) in enumerate(zip(_of_each(scores, where, words), words, lengths, strict=True)):
        try:
            values = np.asarray(row, dtype=np.float64)
        except (TypeError, ValueError):
            raise PlumblineError(f"`{where}[{i}]` must be a list of numbers.") from None
        if values.shape not in ((len(word),), (length,)):
            subwords = (
                f", which are {len(word)} subwords of the tokenizer: give one number for each word or for each subword."
            )
            raise PlumblineError(
                f"`{where}[{i}]` has the shape {list(values.shape)}; text {i} has {length} words"
                f"{': give one number for each.' if len(word) == length else subwords}"
            )
        if not np.isfinite(values).all():
            raise PlumblineError(f"`{where}[{i}]` has a number that is not finite.")
        aligned.append(values if len(values) == len(word) else values[word])
    return aligned
