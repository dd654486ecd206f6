"""Stanford Natural Language Inference (Bowman et al. 2015), as Jain & Wallace (2019) took it."""

import json
import sys
from pathlib import Path

from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]

from plumbline.data.corpus import Corpus, Example
from plumbline.data.sources import declared_files, read_lines
from plumbline.data.tokenise import clean
from plumbline.errors import PlumblineError
from plumbline.registry import dataset

CLASSES = ["neutral", "contradiction", "entailment"]
UNDECIDED = "-"


def parse_pair(line: str) -> tuple[str, str, str]:
    """The label, premise and hypothesis of a line; a ValueError says what is wrong."""
    try:
        pair = json.loads(line)
        label, premise, hypothesis = (pair[key] for key in ("gold_label", "sentence1", "sentence2"))
    except (ValueError, TypeError, KeyError):
        raise ValueError("is no JSON object with gold_label, sentence1 and sentence2") from None
    if label not in [*CLASSES, UNDECIDED]:
        raise ValueError(f"has the label '{label}', which is none of {', '.join(CLASSES)} and {UNDECIDED}")
    return label, str(premise), str(hypothesis)


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
        "embedding": {"kind": "file", "path": "vectors/glove.840B.300d.txt", "dimensions": 300, "missing": "zeros"},
    },
    training={"batch_size": 128},
)
def snli(raw: Path, seed: int) -> Corpus:
    """A premise and a hypothesis that it entails, contradicts or leaves open; undecided pairs are left out.

    The splits are given, so `seed` changes nothing.
    """
    rows: list[tuple[str, str, str, str]] = []
    undecided: dict[str, int] = {}
    for split, path in declared_files(__file__, "snli", raw).items():
        for number, line in tqdm(read_lines(path), desc=f"read {split}", unit="pair", disable=None):
            try:
                label, premise, hypothesis = parse_pair(line)
            except ValueError as error:
                raise PlumblineError(f"'{path}', line {number} {error}: get the file again.") from None
            if label == UNDECIDED:
                undecided[split] = undecided.get(split, 0) + 1
            else:
                # A premise stands in three pairs or more, and so do some hypotheses.
                rows.append((split, label, sys.intern(premise), sys.intern(hypothesis)))
    distinct = list(dict.fromkeys(sentence for _, _, *pair in rows for sentence in pair))
    words = dict(zip(distinct, clean(distinct), strict=True))
    examples = [Example(split, CLASSES.index(label), words[p], words[h]) for split, label, p, h in rows]
    return Corpus(examples, CLASSES, dropped={"no agreed label": undecided} if undecided else {})
