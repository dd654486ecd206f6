"""The Stanford Sentiment Treebank (Socher et al. 2013), two classes: cleaned as in Jain & Wallace (2019), or raw."""

import re
from collections import Counter
from pathlib import Path
from typing import Literal, NamedTuple

from plumbline.data.corpus import Corpus, Example
from plumbline.data.sources import declared_files, read_lines
from plumbline.data.tokenize import clean_treebank
from plumbline.errors import PlumblineError
from plumbline.registry import dataset

NEUTRAL = 2
_PART = re.compile(r"\(|\)|[^()\s]+")


class Leaf(NamedTuple):
    """A word of a tree and its own label."""

    word: str
    label: int


def parse_tree(line: str) -> tuple[int, list[Leaf]]:
    """The root's label and the leaves of a tree such as ``(3 (2 It) (4 works))``; ValueError if malformed."""
    parts = _PART.findall(line)
    if len(parts) < 2 or parts[0] != "(" or parts[1] not in {"0", "1", "2", "3", "4"}:
        raise ValueError("has no root label 0 to 4")
    leaves = []
    depth = 0
    for before, part in zip(["", *parts], parts, strict=False):
        if depth == 0 and before:
            raise ValueError("has unbalanced brackets")
        depth += (part == "(") - (part == ")")
        # An opening bracket is followed by the label of its node.
        if part not in "()" and before != "(":
            leaves.append(Leaf(part, int(before)))
    if depth:
        raise ValueError("has unbalanced brackets")
    return int(parts[1]), leaves


@dataset(
    "sst-2",
    tokens="raw",
    preparation={
        "vocabulary_of": "all",
        "embedding": {"kind": "file", "path": "vectors/wiki-news-300d-1M.vec", "missing": "like-found"},
    },
    training={"batch_size": 64},
    subword_training={"batch_size": 64, "learning_rate": 1e-5},
)
@dataset(
    "sst",
    files={"train": "sst/trees/train.txt", "dev": "sst/trees/dev.txt", "test": "sst/trees/test.txt"},
    source="the Stanford Sentiment Treebank page, https://nlp.stanford.edu/sentiment/ (trainDevTestTrees_PTB.zip)",
    licence="free for research, as its publishers allow",
    evidence="human",
    preparation={
        "longer_than": 5,
        "minimum_document_frequency": 1,
        "embedding": {"kind": "file", "path": "vectors/wiki.simple.vec", "missing": "zeros"},
    },
)
def sst(raw: Path, seed: int, *, leaves_over: int = 0, tokens: Literal["cleaned", "raw"] = "cleaned") -> Corpus:
    """Sentences from film reviews, positive or negative by their root label; neutral ones are left out. The words whose
    own label leans to the class of the sentence are its `evidence`.

    The splits are given, so `seed` has no effect.

    Options:
        leaves_over: Number of leaves above which a tree is kept, counted before cleaning (Recursive ROAR: 5, instead of
            `longer_than`).
        tokens: Words `cleaned` as in Jain & Wallace, or the leaves with their case, punctuation and `-LRB-` (`raw`, as
            in A Song of (Dis)agreement).
    """
    rows: list[tuple[str, int, list[Leaf]]] = []
    neutral: Counter[str] = Counter()
    short: Counter[str] = Counter()
    for split, path in declared_files(__file__, "sst", raw).items():
        for number, line in read_lines(path):
            try:
                label, leaves = parse_tree(line)
            except ValueError as error:
                raise PlumblineError(f"'{path}', line {number}: the tree {error}; download the file again.") from None
            if label == NEUTRAL:
                neutral[split] += 1
            elif len(leaves) <= leaves_over:
                short[split] += 1
            else:
                rows.append((split, int(label > NEUTRAL), leaves))
    # A leaf may become no word, such as a bracket, or several; it is cleaned alone, so that these have its label.
    known = list(dict.fromkeys(leaf.word for _, _, leaves in rows for leaf in leaves))
    cleaned = dict(zip(known, clean_treebank(known) if tokens == "cleaned" else [[w] for w in known], strict=True))
    examples = []
    for split, label, leaves in rows:
        words = [word for leaf in leaves for word in cleaned[leaf.word]]
        leaning = [(leaf.label - NEUTRAL) * (2 * label - 1) > 0 for leaf in leaves for _ in cleaned[leaf.word]]
        examples.append(Example(split, label, words, evidence=leaning))
    dropped = {reason: dict(counts) for reason, counts in (("neutral", neutral), ("few leaves", short)) if counts}
    return Corpus(examples, ["negative", "positive"], dropped=dropped)
