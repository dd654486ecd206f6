"""Stanford Natural Language Inference (Bowman et al. 2015), as in Jain & Wallace (2019), or cased."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from plumbline.data.corpus import Corpus, Example
from plumbline.data.sources import declared_files, read_lines
from plumbline.data.tokenize import clean, words
from plumbline.errors import PlumblineError
from plumbline.registry import dataset
from plumbline.runtime.progress import shown

CLASSES = ["neutral", "contradiction", "entailment"]
UNDECIDED = "-"


class Pair(NamedTuple):
    """A premise and a hypothesis; the label is a class or undecided."""

    label: str
    premise: str
    hypothesis: str


def checked_pair(label: str, premise: str, hypothesis: str) -> Pair:
    """A pair; raises ValueError if its label is unknown."""
    if label not in [*CLASSES, UNDECIDED]:
        raise ValueError(f"has the label '{label}', which is not one of {', '.join(CLASSES)} and {UNDECIDED}")
    # A premise occurs in three pairs or more, and so do some hypotheses.
    return Pair(label, sys.intern(premise), sys.intern(hypothesis))


def parse_pair(line: str) -> Pair:
    """The pair of a line; raises ValueError if it is malformed."""
    try:
        pair = json.loads(line)
        label, premise, hypothesis = (pair[key] for key in ("gold_label", "sentence1", "sentence2"))
    except (ValueError, TypeError, KeyError):
        raise ValueError("is not a JSON object with gold_label, sentence1 and sentence2") from None
    return checked_pair(label, str(premise), str(hypothesis))


def read_pairs(path: Path, split: str) -> Iterator[tuple[str, Pair]]:
    """The pairs of a file of JSON lines, each with the split."""
    for number, line in shown(read_lines(path), f"read {split}", "pair"):
        try:
            yield split, parse_pair(line)
        except ValueError as error:
            raise PlumblineError(f"'{path}', line {number} {error}: download the file again.") from None


def inference_corpus(
    pairs: Iterable[tuple[str, Pair]], tokenize: Callable[[Iterable[str]], Iterable[list[str]]]
) -> Corpus:
    """The corpus of the pairs with a gold label; each distinct sentence is tokenized once."""
    rows: list[tuple[str, Pair]] = []
    undecided: Counter[str] = Counter()
    for split, pair in pairs:
        if pair.label == UNDECIDED:
            undecided[split] += 1
        else:
            rows.append((split, pair))
    distinct = list(dict.fromkeys(sentence for _, pair in rows for sentence in (pair.premise, pair.hypothesis)))
    tokens = dict(zip(distinct, tokenize(distinct), strict=True))
    examples = [
        Example(split, CLASSES.index(label), tokens[premise], tokens[hypothesis])
        for split, (label, premise, hypothesis) in rows
    ]
    return Corpus(examples, CLASSES, dropped={"no agreed label": dict(undecided)} if undecided else {})


@dataset(
    "snli-cased",
    tokens="cased",
    preparation={
        "vocabulary_of": "all",
        "embedding": {"kind": "file", "path": "vectors/wiki-news-300d-1M.vec", "missing": "like-found"},
    },
    training={"batch_size": 64},
    subword_training={"batch_size": 64, "learning_rate": 2e-5},
)
@dataset(
    "snli",
    files={
        "train": "snli/snli_1.0/snli_1.0_train.jsonl",
        "dev": "snli/snli_1.0/snli_1.0_dev.jsonl",
        "test": "snli/snli_1.0/snli_1.0_test.jsonl",
    },
    source="https://nlp.stanford.edu/projects/snli/ (snli_1.0.zip)",
    licence="CC BY-SA 4.0",
    task="inference",
    counts={"train": 549367, "dev": 9842, "test": 9824},
    preparation={
        "minimum_document_frequency": 3,
        "embedding": {"kind": "file", "path": "vectors/glove.840B.300d.txt", "missing": "zeros"},
    },
    training={"batch_size": 128},
)
def snli(raw: Path, seed: int, *, tokens: Literal["cleaned", "cased"] = "cleaned") -> Corpus:
    """A premise and a hypothesis that it entails, contradicts or neither; pairs without a gold label are left out.

    The splits are given, so `seed` has no effect.

    Options:
        tokens: Words `cleaned` as in Jain & Wallace, or spaCy's words unchanged (`cased`, as in A Song of
            (Dis)agreement).
    """
    files = declared_files(__file__, "snli", raw)
    pairs = (pair for split, path in files.items() for pair in read_pairs(path, split))
    return inference_corpus(pairs, clean if tokens == "cleaned" else words)
