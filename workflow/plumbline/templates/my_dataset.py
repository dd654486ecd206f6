"""The dataset my-dataset. It reads a file of lines "class<tab>text"; replace this with your own reader."""

from pathlib import Path

from plumbline.data.corpus import Corpus, Example, split_by_seed
from plumbline.data.sources import declared_files, read_lines
from plumbline.errors import PlumblineError
from plumbline.registry import dataset

CLASSES = ["bad", "good"]
SHARES = {"train": 0.8, "dev": 0.1, "test": 0.1}


@dataset(
    "my-dataset",
    files={"all": "my-dataset/all.tsv"},
    source="the web page of the file",
    licence="its licence",
)
def my_dataset(raw: Path, seed: int, *, lower: bool = True) -> Corpus:
    """Texts that are bad or good, split at random."""
    path = declared_files(__file__, "my-dataset", raw)["all"]
    texts: list[tuple[int, list[str]]] = []
    for number, line in read_lines(path):
        label, tab, text = line.partition("\t")
        if not tab or label not in CLASSES:
            raise PlumblineError(f"'{path}', line {number} is not a class ({', '.join(CLASSES)}), a tab and a text.")
        texts.append((CLASSES.index(label), (text.lower() if lower else text).split()))
    splits = split_by_seed(len(texts), SHARES, seed)
    return Corpus([Example(split, *text) for split, text in zip(splits, texts, strict=True)], CLASSES)
