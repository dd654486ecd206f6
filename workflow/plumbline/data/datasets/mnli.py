"""Multi-Genre Natural Language Inference (Williams et al. 2018), as in A Song of (Dis)agreement.

Its test labels are not public, so the test split is the English part of XNLI (Conneau et al. 2018).
"""

from collections.abc import Iterator
from pathlib import Path

from plumbline.data.corpus import Corpus
from plumbline.data.datasets.snli import Pair, checked_pair, inference_corpus, read_pairs
from plumbline.data.sources import declared_files, read_lines
from plumbline.data.tokenize import words
from plumbline.errors import PlumblineError
from plumbline.registry import dataset

COLUMNS = ["language", "gold_label", "sentence1", "sentence2"]


def read_english(path: Path) -> Iterator[tuple[str, Pair]]:
    """The English pairs of XNLI's test file: tab-separated columns below a header, quotation marks unchanged."""
    lines = read_lines(path)
    header = next(lines, (1, ""))[1].split("\t")
    if not set(COLUMNS) <= set(header):
        raise PlumblineError(f"'{path}' does not start with the columns {', '.join(COLUMNS)}: download the file again.")
    indices = [header.index(column) for column in COLUMNS]
    for number, line in lines:
        fields = line.split("\t")
        try:
            if len(fields) <= max(indices):
                raise ValueError(f"has {len(fields)} of {len(header)} columns")
            language, *pair = (fields[k] for k in indices)
            if language == "en":
                yield "test", checked_pair(*pair)
        except ValueError as error:
            raise PlumblineError(f"'{path}', line {number} {error}: download the file again.") from None


@dataset(
    "mnli",
    files={
        "train": "mnli/multinli_1.0/multinli_1.0_train.jsonl",
        "dev": "mnli/multinli_1.0/multinli_1.0_dev_matched.jsonl",
        "test": "xnli/XNLI-1.0/xnli.test.tsv",
    },
    source="https://cims.nyu.edu/~sbowman/multinli/ (multinli_1.0.zip) and https://github.com/facebookresearch/XNLI "
    "(XNLI-1.0.zip)",
    licence="OANC's, CC BY 3.0 and CC BY-SA 3.0 by genre (MultiNLI), CC BY-NC 4.0 (XNLI)",
    task="inference",
    counts={"train": 392702, "dev": 9815, "test": 5010},
    preparation={
        "vocabulary_of": "all",
        "embedding": {"kind": "file", "path": "vectors/wiki-news-300d-1M.vec", "missing": "like-found"},
    },
    training={"batch_size": 512},
    subword_training={"batch_size": 32, "learning_rate": 2e-5},
)
def mnli(raw: Path, seed: int) -> Corpus:
    """A premise from several genres and a hypothesis that it entails, contradicts or neither.

    Pairs without a gold label are left out; words are spaCy's, cased. Dev is MultiNLI's matched split, and test XNLI's
    in English. The splits are given, so `seed` has no effect.
    """
    files = declared_files(__file__, "mnli", raw)

    def pairs() -> Iterator[tuple[str, Pair]]:
        for split in ("train", "dev"):
            yield from read_pairs(files[split], split)
        yield from read_english(files["test"])

    return inference_corpus(pairs(), words)
