"""Questions about CNN articles (Hermann et al. 2015) in the files of Chen et al. (2016), as in Jain & Wallace."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from plumbline.data.corpus import Corpus, Example
from plumbline.data.sources import declared_files, read_lines
from plumbline.errors import PlumblineError
from plumbline.registry import dataset
from plumbline.runtime.progress import shown

ENTITY = "@entity"
PLACEHOLDER = "@placeholder"


def read_instances(path: Path) -> Iterator[tuple[list[str], str, list[str]]]:
    """Question, answer and passage of each instance: the first three lines of each block between blank lines."""
    lines: list[str] = []
    last = 0
    for number, line in read_lines(path):
        if number > last + 1 and lines:
            yield _instance(lines, path, last)
            lines = []
        # The fourth and later lines are the names of the entities.
        lines.append(line if len(lines) < 3 else "")
        last = number
    if lines:
        yield _instance(lines, path, last)


def _instance(lines: list[str], path: Path, last: int) -> tuple[list[str], str, list[str]]:
    first = last - len(lines) + 1
    if len(lines) < 3:
        raise PlumblineError(
            f"'{path}', line {first}: an instance has {len(lines)} of its 3 lines, question, answer and passage; "
            "download the file again."
        )
    question, (answer, *more), passage = ([sys.intern(word) for word in line.split()] for line in lines[:3])
    if PLACEHOLDER not in question:
        raise PlumblineError(
            f"'{path}', line {first}: the question contains no {PLACEHOLDER}; download the file again."
        )
    if more or not answer.startswith(ENTITY):
        raise PlumblineError(f"'{path}', line {first + 1}: the answer is not one {ENTITY}; download the file again.")
    return question, answer, passage


@dataset(
    "cnn",
    files={"train": "cnn/train.txt", "dev": "cnn/dev.txt", "test": "cnn/test.txt"},
    source="https://github.com/danqi/rc-cnn-dailymail (cnn.tar.gz)",
    licence="free for research, as its publishers allow",
    task="question answering",
    counts={"train": 380298, "dev": 3924, "test": 3198},
    preparation={
        "minimum_document_frequency": 8,
        "embedding": {"kind": "file", "path": "vectors/wiki.simple.vec", "missing": "zeros"},
    },
    training={"batch_size": 90},
)
def cnn(raw: Path, seed: int) -> Corpus:
    """Sentences with a gap about a news article; the answer is one of the entities of the article.

    Classes are the entities of the training articles, and all are in the vocabulary. Questions whose answer is not an
    entity of their article are left out. The splits are given, so `seed` has no effect.
    """
    classes: dict[str, int] = {}
    examples: list[Example] = []
    lacking: Counter[str] = Counter()
    for split, path in declared_files(__file__, "cnn", raw).items():
        for question, answer, passage in shown(read_instances(path), f"read {split}", "question"):
            entities = [word for word in dict.fromkeys(passage) if word.startswith(ENTITY)]
            if split == "train":
                for entity in entities:
                    classes.setdefault(entity, len(classes))
            answers = sorted(classes[entity] for entity in entities if entity in classes)
            if classes.get(answer) in answers:
                examples.append(Example(split, classes[answer], passage, question, answers))
            else:
                lacking[split] += 1
    dropped = {"answer not in the article": dict(lacking)} if lacking else {}
    return Corpus(examples, list(classes), vocabulary=list(classes), dropped=dropped, every_class=False)
