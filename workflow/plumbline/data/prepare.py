"""Turn a corpus into instances and a vocabulary: length filter, sampling, ids, and counts of dropped texts."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, TypeVar

import numpy as np

from plumbline.config.recipes import Preparation
from plumbline.data.corpus import SPLITS, Corpus, Dropped, Example
from plumbline.data.vocabulary import EOS, SOS, SPECIALS, Vocabulary, build_vocabulary, encode
from plumbline.errors import PlumblineError
from plumbline.registry import IMAGES, PAIRED

Numbered = tuple[int, Example]
T = TypeVar("T")


@dataclass(frozen=True)
class Prepared:
    """The columns of the tables `instances` and `vocabulary`, and a summary of the preparation."""

    instances: dict[str, list[Any]]
    vocabulary: dict[str, list[Any]]
    summary: dict[str, Any]

    @property
    def words(self) -> list[str]:
        """All words by id, the special tokens first."""
        return self.vocabulary["word"]

    @property
    def training_tokens(self) -> list[list[str]]:
        """The words of the training texts, without SOS and EOS."""
        rows = zip(self.instances["split"], self.instances["tokens"], strict=True)
        return [tokens[1:-1] for split, tokens in rows if split == "train"]


def prepare(
    corpus: Corpus,
    recipe: Preparation,
    name: str,
    published: Mapping[str, int] | None = None,
    task: str | None = None,
    evidence: str = "",
    splits: Sequence[str] = SPLITS,
    vocabulary: Vocabulary | None = None,
) -> Prepared:
    """Filter, sample and encode a corpus. `instance` numbers the texts of a split before filtering.

    `published` is the size of each published split; `task`, if given, decides whether texts must have a second text.
    `evidence` is what the dataset declares about that of its texts; `splits` are those that it must have. Without a
    `vocabulary`, it is built from the texts.
    """
    _check_corpus(corpus, name)
    if task == IMAGES:
        raise PlumblineError(f"Dataset '{name}': its task is {task}, but its reader returns texts.")
    if task and corpus.examples and (task in PAIRED) == (corpus.examples[0].pair is None):
        rule = "must each have a `pair`" if task in PAIRED else "must have no `pair`"
        raise PlumblineError(f"Dataset '{name}': its task is {task}, so its texts {rule}.")
    if evidence and corpus.examples and corpus.examples[0].evidence is None:
        raise PlumblineError(f"Dataset '{name}': it declares `evidence`, so its texts must each have `evidence`.")
    texts = {split: list(enumerate(e for e in corpus.examples if e.split == split)) for split in splits}
    partial = fewer_than_published({split: len(texts[split]) for split in splits}, published or {}, name)
    dropped = {reason: dict(counts) for reason, counts in corpus.dropped.items()}
    kept = {split: _keep(texts[split], corpus, recipe, name, split, dropped) for split in splits}
    if vocabulary is None:
        # Jain & Wallace count words before the length filter. A `limit` is for speed, so only the sample is counted.
        counted = (texts if recipe.limit is None else kept).get("train", [])
        if recipe.vocabulary_of == "all":
            counted = [text for split in splits for text in kept[split]]
        documents = [text for _, example in counted for text in (example.tokens, example.pair) if text]
        vocabulary = build_vocabulary(documents, recipe.minimum_document_frequency, corpus.vocabulary or ())
    size = len(vocabulary.words)
    summary = {
        "dataset": name,
        "classes": list(corpus.classes),
        "splits": {split: _summarize(corpus, texts[split], kept[split], vocabulary) for split in splits},
        "dropped": dropped,
        "partial": partial,
        "paired": any(example.pair for example in corpus.examples),
        "evidence": evidence,
        "vocabulary_size": size,
        "seed": recipe.seed,
        **({"drawn": corpus.drawn} if corpus.drawn else {}),
    }
    table: dict[str, list[Any]] = {
        "id": list(range(size)),
        "word": vocabulary.words,
        "document_frequency": vocabulary.document_frequency,
    }
    return Prepared(_columns(kept, vocabulary), table, summary)


def fewer_than_published(
    found: Mapping[str, int], published: Mapping[str, int], name: str, what: str = "texts"
) -> dict[str, dict[str, int]]:
    """The splits with fewer texts than were published; more are refused."""
    for split, count in published.items():
        if found[split] > count:
            raise PlumblineError(
                f"Dataset '{name}', split '{split}' holds {found[split]} {what}, but only {count} were published: its "
                "files are not the publisher's, or some occur twice; download them again."
            )
    fewer = {split: count for split, count in published.items() if found[split] < count}
    return {split: {"texts": found[split], "published": count} for split, count in fewer.items()}


def _keep(
    texts: list[Numbered], corpus: Corpus, recipe: Preparation, name: str, split: str, dropped: Dropped
) -> list[Numbered]:
    """The texts of a split after all filters; the number that each filter drops is added to `dropped`."""
    worded = [text for text in texts if text[1].tokens and text[1].pair != []]
    fitting = _length_filter(worded, recipe)
    kept = apply_limit(fitting, recipe, split)
    advice = "widen `longer_than`, `shorter_than`, `together_shorter_than` or `open_bound`."
    steps = [
        ("no words", worded, "", "the dataset's files or its reader lack it."),
        ("length filter", fitting, f" after {_describe_filter(recipe)}", advice),
        ("limit", kept, f" after the limit of {recipe.limit}", "raise `limit`."),
    ]
    before = len(texts)
    for reason, left, after, advice in steps:
        counts = count_per_class((example.label for _, example in left), corpus.classes if corpus.every_class else ())
        missing = [f"of class '{class_}'" for class_, count in counts.items() if not count]
        if missing or not left:
            what = missing[0] if left else "with words"
            raise PlumblineError(f"Dataset '{name}', split '{split}' holds no text {what}{after}: {advice}")
        if len(left) < before:
            dropped.setdefault(reason, {})[split] = before - len(left)
        before = len(left)
    return kept


def check_split_and_label(split: str, label: int, classes: Sequence[str], where: str) -> None:
    """Refuse an unknown split or class."""
    if split not in SPLITS:
        raise PlumblineError(f"{where}: the split must be one of {', '.join(SPLITS)}.")
    if isinstance(label, bool) or not isinstance(label, int | np.integer):
        raise PlumblineError(
            f"{where}: the label {label!r} is not a whole number; it must be the index of its class, from 0, in "
            f"{', '.join(classes)}."
        )
    if not 0 <= label < len(classes):
        raise PlumblineError(f"{where}: label {label} is not one of the {len(classes)} classes ({', '.join(classes)}).")


def check_classes(classes: Sequence[str], name: str) -> None:
    """Refuse classes that are not a list of different names."""
    named = isinstance(classes, list | tuple) and all(isinstance(class_, str) and class_ for class_ in classes)
    if not named or not classes or len(set(classes)) < len(classes):
        raise PlumblineError(f"Dataset '{name}': its classes are {classes!r}; they must be a list of different names.")


def _is_text(words: Any) -> bool:
    return isinstance(words, Sequence) and not isinstance(words, str) and all(isinstance(word, str) for word in words)


def _check_corpus(corpus: Corpus, name: str) -> None:
    if not isinstance(corpus, Corpus):
        value = "nothing" if corpus is None else f"a {type(corpus).__name__}"
        raise PlumblineError(f"Dataset '{name}': its reader returns {value}; it must return a Corpus or ImageCorpus.")
    check_classes(corpus.classes, name)
    for index, example in enumerate(corpus.examples):
        if not isinstance(example, Example):
            raise PlumblineError(
                f"Dataset '{name}', text {index}: it is a {type(example).__name__}; each text must be an Example."
            )
        where = f"Dataset '{name}', split '{example.split}', text {index}"
        for column in ("tokens", "pair"):
            words = getattr(example, column)
            if not _is_text(words) and not (column == "pair" and words is None):
                raise PlumblineError(f"{where}: `{column}` must be a list of words; `tokenize` splits a string.")
        check_split_and_label(example.split, example.label, corpus.classes, where)
        if "" in example.tokens or "" in (example.pair or ()):
            raise PlumblineError(f"{where}: a word is the empty string; the dataset's reader must leave it out.")
        for column in ("pair", "answers", "evidence"):
            if (getattr(example, column) is None) != (getattr(corpus.examples[0], column) is None):
                raise PlumblineError(f"{where}: some texts have `{column}` and some do not; give it to all or none.")
        if example.answers is not None and example.label not in example.answers:
            raise PlumblineError(
                f"{where}: its answer '{corpus.classes[example.label]}' is not among its `answers`; "
                "the dataset's reader must leave such a text out."
            )
        outside = [answer for answer in example.answers or () if not 0 <= answer < len(corpus.classes)]
        if outside:
            raise PlumblineError(f"{where}: {outside[0]} in `answers` is not one of the {len(corpus.classes)} classes.")
        if example.evidence is not None and len(example.evidence) != len(example.tokens):
            raise PlumblineError(f"{where}: `evidence` must have one flag per word.")


def _length_filter(texts: list[Numbered], recipe: Preparation) -> list[Numbered]:
    """The texts strictly between the bounds; an open bound may be the extreme length of the split."""
    lengths = [len(example.tokens) for _, example in texts] or [0]
    shortest, longest = (min(lengths), max(lengths)) if recipe.open_bound == "drop-extreme" else (-inf, inf)
    lower = shortest if recipe.longer_than is None else recipe.longer_than
    upper = longest if recipe.shorter_than is None else recipe.shorter_than
    together = inf if recipe.together_shorter_than is None else recipe.together_shorter_than
    fitting = [text for text in texts if lower < len(text[1].tokens) < upper]
    return [text for text in fitting if len(text[1].tokens) + len(text[1].pair or ()) < together]


def apply_limit(texts: list[T], recipe: Preparation, split: str) -> list[T]:
    """A random sample of at most `limit` texts of a split, in their order."""
    if recipe.limit is None or len(texts) <= recipe.limit:
        return texts
    # A generator per split: the sample of one split must not depend on the size of another.
    generator = np.random.default_rng([recipe.seed, SPLITS.index(split)])
    return [texts[k] for k in sorted(generator.choice(len(texts), recipe.limit, replace=False))]


def _describe_filter(recipe: Preparation) -> str:
    bounds = {"more than": recipe.longer_than, "fewer than": recipe.shorter_than}
    parts = [f"{words} {bound} words" for words, bound in bounds.items() if bound is not None]
    if recipe.open_bound == "drop-extreme" and len(parts) < 2:
        parts.append("open bounds drop the extreme")
    if recipe.together_shorter_than is not None:
        parts.append(f"together fewer than {recipe.together_shorter_than} words")
    return f"the length filter ({', '.join(parts)})"


def count_per_class(labels: Iterable[int], classes: Sequence[str]) -> dict[str, int]:
    """The number of labels of each class."""
    counts = Counter(labels)
    return {class_: counts[label] for label, class_ in enumerate(classes)}


def summarize_split(texts: Mapping[str, int], instances: Mapping[str, int], lengths: Sequence[int]) -> dict[str, Any]:
    """The summary of a split: its texts and instances per class, and the lengths of its instances."""
    return {
        "texts": sum(texts.values()),
        "instances": len(lengths),
        "texts_per_class": texts,
        "instances_per_class": instances,
        "mean_length": sum(lengths) / len(lengths),
        "shortest": min(lengths),
        "longest": max(lengths),
    }


def _summarize(corpus: Corpus, texts: list[Numbered], kept: list[Numbered], vocabulary: Vocabulary) -> dict[str, Any]:
    lengths = [len(example.tokens) for _, example in kept]
    unknown = sum(word not in vocabulary.ids for _, example in kept for word in example.tokens)
    before, after = (count_per_class((e.label for _, e in rows), corpus.classes) for rows in (texts, kept))
    return {**summarize_split(before, after, lengths), "unknown_share": unknown / sum(lengths)}


def _specials(words: list[str]) -> list[str]:
    return [SPECIALS[SOS], *words, SPECIALS[EOS]]


def _columns(kept: dict[str, list[Numbered]], vocabulary: Vocabulary) -> dict[str, list[Any]]:
    rows = [(split, number, example) for split in kept for number, example in kept[split]]
    return {
        "split": [split for split, _, _ in rows],
        "instance": [number for _, number, _ in rows],
        "label": [example.label for _, _, example in rows],
        "tokens": [_specials(example.tokens) for _, _, example in rows],
        "ids": [encode(example.tokens, vocabulary.ids) for _, _, example in rows],
        "maskable": [[False, *[True] * len(example.tokens), False] for _, _, example in rows],
        "tokens_b": [example.pair and _specials(example.pair) for _, _, example in rows],
        "ids_b": [example.pair and encode(example.pair, vocabulary.ids) for _, _, example in rows],
        "maskable_b": [example.pair and [False, *[True] * len(example.pair), False] for _, _, example in rows],
        "answers": [example.answers for _, _, example in rows],
        "evidence": [example.evidence and [False, *example.evidence, False] for _, _, example in rows],
    }
