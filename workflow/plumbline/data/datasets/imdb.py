"""Film reviews of IMDB (Maas et al. 2011), tokenized as in Keras' file, which Jain & Wallace (2019) used."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from plumbline.data.corpus import SPLITS, Corpus, Example, hold_out
from plumbline.data.sources import declared_files, read_lines, read_text
from plumbline.errors import PlumblineError
from plumbline.registry import dataset
from plumbline.runtime.progress import shown

TOO_LONG = 400
SEED = 1378
_DROPPED = re.compile(r"""[!"#$%&()*+,\-./:;<=>?@\[\\\]^_`{|}~\t\n]""")


class Review(NamedTuple):
    """One review: its label, 1 if it is positive, and its words."""

    label: int
    words: list[str]


def keras_words(text: str) -> list[str]:
    """Keras' tokenization: lowercase, no punctuation but apostrophes; a tag `<br />` becomes the word `br`."""
    return [sys.intern(word) for word in _DROPPED.sub(" ", text.lower()).split(" ") if word]


@dataset(
    "imdb-240",
    preparation={
        "shorter_than": 241,
        "vocabulary_of": "all",
        "embedding": {"kind": "file", "path": "vectors/wiki-news-300d-1M.vec", "missing": "like-found"},
    },
    training={"batch_size": 64},
    subword_training={"batch_size": 64, "learning_rate": 1e-5},
)
@dataset(
    "imdb",
    files={
        "train": "imdb/aclImdb/train",
        "test": "imdb/aclImdb/test",
        "split=listed:split": "imdb/jain_wallace_split.tsv",
    },
    source="https://ai.stanford.edu/~amaas/data/sentiment/ (aclImdb_v1.tar.gz; the list of `split: listed` is "
    "one of your own)",
    licence="free for research, as its publishers allow",
    counts={"train": 17212, "dev": 4304, "test": 4363},
    preparation={
        "longer_than": 6,
        "minimum_document_frequency": 10,
        "embedding": {"kind": "file", "path": "vectors/wiki.simple.vec", "missing": "zeros"},
    },
)
def imdb(raw: Path, seed: int, *, split: Literal["drawn", "listed"] = "drawn") -> Corpus:
    """Film reviews of fewer than 400 words, positive or negative.

    As in Keras' file, words of test reviews that no training review contains are removed. The splits do not depend on
    `seed`.

    Options:
        split: `drawn` redraws the study's splits, 80% of `train` and 20% of `test`, and needs all 50,000 reviews;
            `listed` reads them from a file of split and name.
    """
    paths = declared_files(__file__, "imdb", raw, ["train", "test", *(["split=listed:split"] * (split == "listed"))])
    reviews = {part: _read(paths[part]) for part in ("train", "test")}
    known = {word for review in reviews["train"].values() for word in review.words}
    reviews["test"] = {
        name: Review(label, [word for word in words if word in known])
        for name, (label, words) in reviews["test"].items()
    }
    return _listed(reviews, paths["split=listed:split"]) if split == "listed" else _drawn(reviews)


def _read(folder: Path) -> dict[str, Review]:
    """The reviews of a folder by name, in the order of Keras' file: positive first, each class sorted."""
    files = [(label, path) for label in (1, 0) for path in sorted((folder / ("neg", "pos")[label]).glob("*.txt"))]
    if len({label for label, _ in files}) < 2:
        raise PlumblineError(
            f"'{folder}' does not contain reviews (*.txt) in the folders 'pos' and 'neg': download it again."
        )
    return {
        f"{folder.name}/{path.parent.name}/{path.name}": Review(label, keras_words(read_text(path)))
        for label, path in shown(files, f"read {folder.name}", "review")
    }


def _drawn(reviews: Mapping[str, Mapping[str, Review]]) -> Corpus:
    short = {part: [r for r in named.values() if len(r.words) < TOO_LONG] for part, named in reviews.items()}
    dev = set(hold_out(range(len(short["train"])), 0.2, SEED)[1])
    test = set(hold_out(range(len(short["test"])), 0.8, SEED)[0])
    examples = [Example("dev" if k in dev else "train", *review) for k, review in enumerate(short["train"])]
    examples += [Example("test", *review) for k, review in enumerate(short["test"]) if k in test]
    long = {part: len(reviews[part]) - len(kept) for part, kept in short.items() if len(reviews[part]) > len(kept)}
    dropped = {"400 words or more": long} if long else {}
    dropped["not drawn"] = {"test": len(short["test"]) - len(test)}
    return Corpus(examples, ["negative", "positive"], dropped=dropped)


def _listed(reviews: Mapping[str, Mapping[str, Review]], path: Path) -> Corpus:
    """The reviews listed in a file of lines ``split TAB aclImdb/train/pos/ID_RATING.txt`` below a header."""
    examples: dict[str, Example] = {}
    for number, line in list(read_lines(path))[1:]:
        split, _, file = line.partition("\t")
        name = file.removeprefix("aclImdb/")
        review = reviews.get(name.partition("/")[0], {}).get(name)
        fault = None
        if split not in SPLITS:
            fault = f"'{split}' is not one of the splits {', '.join(SPLITS)}"
        elif review is None:
            fault = f"there is no review '{file}'"
        elif name in examples:
            fault = f"'{file}' is listed twice"
        if fault or review is None:
            raise PlumblineError(f"'{path}', line {number}: {fault}; correct the list or download the reviews again.")
        examples[name] = Example(split, *review)
    rest = {part: sum(name not in examples for name in named) for part, named in reviews.items()}
    dropped = {"not listed": {part: count for part, count in rest.items() if count}}
    return Corpus(list(examples.values()), ["negative", "positive"], dropped=dropped if any(rest.values()) else {})
