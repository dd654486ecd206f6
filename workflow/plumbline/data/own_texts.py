"""From the rows of the user's own table to a corpus: classes, splits, words and evidence."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from plumbline.config.own_data import label_text, split_list, split_of
from plumbline.data.corpus import Corpus, Dropped, Example
from plumbline.data.marked_words import Span, flag_words, read_spans
from plumbline.data.own_splits import assign_splits
from plumbline.data.tabular import Row
from plumbline.data.tokenize import clean_words, words
from plumbline.errors import PlumblineError

# More distinct labels than this are no classes, unless `classes` names them.
MOST_CLASSES = 100
# The labels that a message shows, and the characters of each.
SHOWN_LABELS, LABEL_WIDTH = 10, 40
# The labels that show what a column holds if these are no classes.
EXAMPLES = 5
# Why a row without one of them is dropped.
NO_TEXT, NO_LABEL = "empty text", "no label"


@dataclass(frozen=True)
class TextOptions:
    """Which columns of a table hold what, and how texts become instances."""

    text: str = ""
    label: str = ""
    pair: str = ""
    task: Literal["auto", "classification", "question answering", "inference", "paraphrase"] = "auto"
    classes: dict[str, str] | list[str] | None = None
    answers: list[str] | None = None
    split: str = ""
    shares: dict[str, float] | None = None
    dev_share: float = 0.0
    stratified: bool = True
    duplicates: Literal["keep", "drop"] = "keep"
    tokens: Literal["cleaned", "cased", "spaces"] = "cleaned"
    evidence: str = ""
    evidence_form: Literal["flags", "spans"] = "flags"
    evidence_source: Literal["human", "rule"] = "human"

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        named = (self.text, self.label, self.pair, self.split, self.evidence, *(self.answers or ()))
        return list(dict.fromkeys(filter(None, named)))

    @cached_property
    def class_names(self) -> dict[str, str]:
        """The class of each named label, in the order of classes."""
        listed = self.classes if isinstance(self.classes, dict) else {label: label for label in self.classes or ()}
        return {label_text(label): name for label, name in listed.items()}


class Labelled(NamedTuple):
    """A row with its text, its label and its possible answers, as they stand in the file; an empty split is drawn."""

    row: Row
    text: str
    pair: str
    label: str
    split: str
    # The label and the other answers, if the options name columns of them.
    answers: list[str]


@dataclass(frozen=True)
class Selected:
    """The rows that become instances, each with its class and split, and what became of the others."""

    rows: list[Labelled]
    labels: list[int]
    splits: list[str]
    classes: list[str]
    dropped: Dropped
    drawn: dict[str, Any]
    # The spans of evidence of each row, if there is any.
    marked: list[list[Span]]


def select_rows(rows: Iterable[Row], options: TextOptions, seed: int, order: Sequence[str] = ()) -> Selected:
    """Name the classes and draw the splits; `order` are the classes that the data itself declares, if any."""
    kept, dropped, found = _keep(rows, options)
    if options.answers:
        names = {answer: answer for answer in _sorted({answer for item in kept for answer in item.answers})}
    else:
        names = options.class_names or {label: label for label in order or _distinct_labels(kept, options.label)}
    # Labels of one class need not follow each other.
    classes = list(dict.fromkeys(names.values()))
    labels = [classes.index(names[item.label]) for item in kept]
    _check_classes(labels, classes, options, found)
    given = [item.split for item in kept]
    # An answer may be rare, or never right.
    stratified = options.stratified and not options.answers
    draw = (options.shares, options.dev_share, stratified, not options.answers)
    splits, drawn = assign_splits(given, labels, classes, seed, *draw)
    marked = [_spans(item, options) for item in kept] if options.evidence else []
    return Selected(kept, labels, splits, classes, dropped, drawn, marked)


def read_corpus(rows: Iterable[Row], options: TextOptions, seed: int, order: Sequence[str] = ()) -> Corpus:
    """The corpus of a table."""
    selected = select_rows(rows, options, seed, order)
    tokens, evidence = _words(selected, options)
    pairs: Sequence[list[str] | None] = [None] * len(tokens)
    if options.pair:
        pairs = tokenize_texts([item.pair for item in selected.rows], options)[1]
    number = {name: k for k, name in enumerate(selected.classes)}
    answers = [[number[answer] for answer in item.answers] or None for item in selected.rows]
    columns = zip(selected.splits, selected.labels, tokens, pairs, answers, evidence, strict=True)
    examples = [Example(*column) for column in columns]
    return Corpus(
        examples,
        selected.classes,
        dropped=selected.dropped,
        # Answers to questions are often rare.
        every_class=options.task != "question answering" and not options.answers,
        drawn=selected.drawn,
    )


def _keep(rows: Iterable[Row], options: TextOptions) -> tuple[list[Labelled], Dropped, Counter[str]]:
    """The rows with a text, a named label and, if duplicates are dropped, a new text; the number of the others; and
    the number of texts of each label, named or not."""
    kept: list[Labelled] = []
    found: Counter[str] = Counter()
    dropped: dict[str, Counter[str]] = {}
    seen: set[tuple[str, str]] = set()
    for row in rows:
        item = _labelled(row, options)
        reason = _reason(item, options, seen)
        if reason not in (NO_TEXT, NO_LABEL):
            found[item.label] += 1
        if reason:
            dropped.setdefault(reason, Counter())[item.split or "all"] += 1
        else:
            kept.append(item)
            seen.add((item.text, item.pair))
    return kept, {reason: dict(counts) for reason, counts in dropped.items()}, found


def _reason(item: Labelled, options: TextOptions, seen: set[tuple[str, str]]) -> str:
    """Why a row is dropped, or an empty string."""
    if not item.text.strip() or (options.pair and not item.pair.strip()):
        return NO_TEXT
    if not item.label:
        return NO_LABEL
    if options.answers and len(item.answers) < 2:
        return "no second answer"
    if options.class_names and item.label not in options.class_names:
        return "label not in classes"
    return "duplicate" if options.duplicates == "drop" and (item.text, item.pair) in seen else ""


def _labelled(row: Row, options: TextOptions) -> Labelled:
    text, pair = (_text(row, column) for column in (options.text, options.pair))
    label = row.values.get(options.label)
    if isinstance(label, list | dict):
        raise PlumblineError(f"{row.where}: the label in column '{options.label}' is {label!r}; it must be one value.")
    return Labelled(row, text, pair, label_text(label), _split(row, options.split), _answers(row, options))


def _answers(row: Row, options: TextOptions) -> list[str]:
    """The label and the other answers of a row, each once; a cell may hold a list of them."""
    found: list[Any] = []
    for column in (options.label, *options.answers) if options.answers else ():
        value = row.values.get(column)
        if isinstance(value, dict):
            raise PlumblineError(f"{row.where}: column '{column}' holds {value!r}; it must hold an answer or a list.")
        found += value if isinstance(value, list) else [value]
    return list(dict.fromkeys(filter(None, map(label_text, found))))


def _text(row: Row, column: str) -> str:
    value = row.values.get(column) if column else None
    if value is None or value != value:
        return ""
    if isinstance(value, list | dict | bytes):
        raise PlumblineError(f"{row.where}: column '{column}' holds a {type(value).__name__}; it must hold text.")
    return str(value)


def _split(row: Row, column: str) -> str:
    """The split of a row: that of its file, or that which a column names."""
    if not column:
        return row.split
    name = label_text(row.values.get(column))
    if not split_of(name):
        raise PlumblineError(
            f"{row.where}: column '{column}' holds '{name}', which is not a split; write one of {split_list()}."
        )
    return split_of(name)


def _distinct_labels(kept: Sequence[Labelled], column: str) -> list[str]:
    """The distinct labels, which must be few enough for classes."""
    labels = _sorted({item.label for item in kept})
    if len(labels) > MOST_CLASSES:
        raise PlumblineError(
            f"Column '{column}' holds {len(labels)} different labels, such as {', '.join(sorted(labels)[:EXAMPLES])}; "
            "name another column in `label`, or list those that are classes in `classes`."
        )
    return labels


def _sorted(labels: Iterable[str]) -> list[str]:
    """The labels, sorted as numbers if all are."""
    labels = sorted(labels)
    try:
        return sorted(labels, key=float)
    except ValueError:
        return labels


def _check_classes(labels: Sequence[int], classes: Sequence[str], options: TextOptions, found: Counter[str]) -> None:
    """Refuse a class without rows, and fewer than two classes; `found` has the number of texts of each label."""
    if not labels and options.class_names and found:
        named = _listed(options.class_names)
        raise PlumblineError(f"No row has one of the labels {named}; correct `classes`: {_describe(found, options)}.")
    if not labels:
        raise PlumblineError(
            f"No row has a text in column '{options.text}' and a label in column '{options.label}'; check that `text` "
            "and `label` name the right columns."
        )
    if len(classes) < 2:
        raise PlumblineError(
            f"Column '{options.label}' holds only the label '{classes[0]}'; a study needs two classes or more."
        )
    missing = {*range(len(classes))} - {*labels}
    # An answer may be wrong in every row.
    if missing and not options.answers:
        label = min(missing)
        raise PlumblineError(
            f"No row has the class '{classes[label]}'; correct `classes`: {_describe(found, options)}."
        )


def _describe(found: Counter[str], options: TextOptions) -> str:
    """The labels that the column holds, the most frequent first, and those that `classes` does not name."""
    counts = dict(found.most_common())
    rows = [f"'{_short(label)}' ({count} row{'s' if count > 1 else ''})" for label, count in counts.items()]
    unnamed = [label for label in counts if options.class_names and label not in options.class_names]
    missing = f", of which {_listed(unnamed)} {'is' if len(unnamed) == 1 else 'are'} not in `classes`"
    missing = ", none of which is in `classes`" if len(unnamed) == len(counts) else missing
    return f"column '{options.label}' holds {_first(rows)}{missing if unnamed else ''}"


def _listed(labels: Iterable[str]) -> str:
    return _first([f"'{_short(label)}'" for label in labels])


def _first(names: Sequence[str]) -> str:
    """The first names, and the number of others."""
    more = len(names) - SHOWN_LABELS
    return ", ".join(names[:SHOWN_LABELS]) + (f" and {more} more" if more > 0 else "")


def _short(label: str) -> str:
    return label if len(label) <= LABEL_WIDTH else f"{label[: LABEL_WIDTH - 1]}…"


def tokenize_texts(texts: Sequence[str], options: TextOptions) -> tuple[list[list[str]], list[list[str]]]:
    """The words of each text as they stand in it, and as models read them."""
    cased = [text.split() for text in texts] if options.tokens == "spaces" else list(words(texts))
    return cased, [clean_words(text) for text in cased] if options.tokens == "cleaned" else cased


def _words(selected: Selected, options: TextOptions) -> tuple[list[list[str]], list[list[bool]] | list[None]]:
    """The words of each text, and the flags of those that are evidence."""
    texts = [item.text for item in selected.rows]
    cased, tokens = tokenize_texts(texts, options)
    if not options.evidence:
        return tokens, [None] * len(texts)
    rows = zip(cased, texts, selected.marked, strict=True)
    return tokens, [flag_words(words_of, text, spans) for words_of, text, spans in rows]


def _spans(item: Labelled, options: TextOptions) -> list[Span]:
    try:
        return read_spans(item.row.values.get(options.evidence), item.text, options.evidence_form)
    except ValueError as error:
        raise PlumblineError(f"{item.row.where}: column '{options.evidence}' {error}.") from None
