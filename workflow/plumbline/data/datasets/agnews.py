"""AG News (Zhang et al. 2015), two of its four topics, as in Jain & Wallace (2019)."""

from collections import Counter
from pathlib import Path

from plumbline.data.corpus import Corpus, Example, draw_dev
from plumbline.data.sources import declared_files, read_csv
from plumbline.data.tokenize import clean
from plumbline.errors import PlumblineError
from plumbline.registry import dataset
from plumbline.runtime.progress import shown

TOPICS = {"1": 0, "2": None, "3": 1, "4": None}


@dataset(
    "agnews",
    files={"train": "agnews/train.csv", "test": "agnews/test.csv"},
    source="the AG News files of Zhang, Zhao & LeCun (2015), ag_news_csv.tgz of "
    "https://github.com/zhangxiangxiao/Crepe (train.csv and test.csv)",
    licence="free for research and other non-commercial use, as its publisher allows",
    counts={"train": 51000, "dev": 9000, "test": 3800},
    preparation={
        "minimum_document_frequency": 5,
        "embedding": {"kind": "file", "path": "vectors/wiki.simple.vec", "missing": "zeros"},
    },
)
def agnews(raw: Path, seed: int) -> Corpus:
    """Descriptions of news articles about the world or about business; other topics are left out.

    Dev is the study's 15% of the training file, so `seed` has no effect. Backslashes are kept as published.
    """
    rows: list[tuple[str, int, str]] = []
    others: Counter[str] = Counter()
    for split, path in declared_files(__file__, "agnews", raw).items():
        for number, row in shown(read_csv(path), f"read {split}", "row"):
            if len(row) != 3 or row[0] not in TOPICS:
                raise PlumblineError(
                    f"'{path}', line {number} does not have a class from 1 to 4, a title and a description: download "
                    "the file again."
                )
            label = TOPICS[row[0]]
            if label is None:
                others[split] += 1
            else:
                rows.append((split, label, row[2]))
    cleaned = clean(text for _, _, text in rows)
    examples = [Example(split, label, words) for (split, label, _), words in zip(rows, cleaned, strict=True)]
    return Corpus(draw_dev(examples), ["world", "business"], dropped={"other topics": dict(others)} if others else {})
