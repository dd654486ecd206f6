"""Quora Question Pairs (Iyer, Dandekar & Csernai 2017), as in A Song of (Dis)agreement."""

import sys
from pathlib import Path

from plumbline.data.corpus import Corpus, Example, split_by_seed
from plumbline.data.sources import declared_files, read_csv
from plumbline.errors import PlumblineError
from plumbline.registry import dataset
from plumbline.runtime.progress import shown

SHARES = {"train": 0.8, "dev": 0.1, "test": 0.1}
COLUMNS = ["id", "qid1", "qid2", "question1", "question2", "is_duplicate"]


@dataset(
    "quora",
    files={"all": "quora/quora_duplicate_questions.tsv"},
    source="https://quoradata.quora.com/First-Quora-Dataset-Release-Question-Pairs (quora_duplicate_questions.tsv)",
    licence="non-commercial use, as Quora's terms of service allow",
    task="paraphrase",
    counts={"train": 323432, "dev": 40429, "test": 40429},
    preparation={
        "together_shorter_than": 200,
        "vocabulary_of": "all",
        "embedding": {"kind": "file", "path": "vectors/wiki-news-300d-1M.vec", "missing": "like-found"},
    },
    training={"batch_size": 1024},
    subword_training={"batch_size": 64, "learning_rate": 2e-5},
)
def quora(raw: Path, seed: int) -> Corpus:
    """Two questions that ask the same, or not; tokenized at white space.

    The splits, 80/10/10% of all pairs in the file, are drawn by `seed`.
    """
    (path,) = declared_files(__file__, "quora", raw).values()
    rows = read_csv(path, "\t")
    if next(rows, (1, []))[1] != COLUMNS:
        raise PlumblineError(f"'{path}' does not start with the columns {', '.join(COLUMNS)}: download the file again.")
    pairs: list[tuple[int, list[str], list[str]]] = []
    for number, row in shown(rows, "read", "pair"):
        if len(row) != len(COLUMNS) or row[-1] not in {"0", "1"}:
            raise PlumblineError(
                f"'{path}', line {number} does not have {len(COLUMNS)} columns with 0 or 1 in the last: download the "
                "file again."
            )
        first, second = ([sys.intern(word) for word in question.split()] for question in row[3:5])
        pairs.append((int(row[-1]), first, second))
    splits = split_by_seed(len(pairs), SHARES, seed)
    examples = [Example(split, *pair) for split, pair in zip(splits, pairs, strict=True)]
    return Corpus(examples, ["different", "duplicate"])
