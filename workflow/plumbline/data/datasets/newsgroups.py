"""Posts of two sports groups of 20 Newsgroups (Lang 1995), cleaned and split as in Jain & Wallace (2019)."""

import re
from pathlib import Path

import numpy as np

from plumbline.data.corpus import Corpus, Example, stratified_splits
from plumbline.data.sources import declared_files, read_text
from plumbline.data.tokenize import clean
from plumbline.errors import PlumblineError
from plumbline.registry import dataset
from plumbline.runtime.progress import shown

# The number of posts of each group in the folders `train` and `test`.
GROUPS = {
    "alt.atheism": (480, 319),
    "comp.graphics": (584, 389),
    "comp.os.ms-windows.misc": (591, 394),
    "comp.sys.ibm.pc.hardware": (590, 392),
    "comp.sys.mac.hardware": (578, 385),
    "comp.windows.x": (593, 395),
    "misc.forsale": (585, 390),
    "rec.autos": (594, 396),
    "rec.motorcycles": (598, 398),
    "rec.sport.baseball": (597, 397),
    "rec.sport.hockey": (600, 399),
    "sci.crypt": (595, 396),
    "sci.electronics": (591, 393),
    "sci.med": (594, 396),
    "sci.space": (593, 394),
    "soc.religion.christian": (599, 398),
    "talk.politics.guns": (546, 364),
    "talk.politics.mideast": (564, 376),
    "talk.politics.misc": (465, 310),
    "talk.religion.misc": (377, 251),
}
SPORTS = ("rec.sport.baseball", "rec.sport.hockey")
SEED = 13478
_QUOTE = re.compile(r"writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^\||^>")
_RUN = re.compile(r"(\W)+")


def without_headers(text: str) -> str:
    """The text after the first blank line."""
    return text.partition("\n\n")[2]


def without_footer(text: str) -> str:
    """The text before the last line that is blank or of hyphens only, unless that is the first line."""
    lines = text.strip().split("\n")
    last = max((k for k, line in enumerate(lines) if not line.strip().strip("-")), default=0)
    return "\n".join(lines[:last]) if last else text


def without_quotes(text: str) -> str:
    """The text without lines that quote another post or introduce a quotation."""
    return "\n".join(line for line in text.split("\n") if not _QUOTE.search(line))


def collapse_punctuation(words: list[str]) -> list[str]:
    """Replace each run of non-word characters, spaces included, by its last one, which removes most punctuation."""
    return _RUN.sub(r" \1 ", " ".join(words)).split()


def sklearn_order() -> list[tuple[str, int, int]]:
    """Group, folder and index in the folder of all posts, in the order of scikit-learn's `fetch_20newsgroups`.

    It shuffles all 20 groups, so the order of two groups depends on the sizes of all.
    """
    posts: list[tuple[str, int, int]] = []
    for folder in (0, 1):
        listed = [(group, folder, index) for group, sizes in GROUPS.items() for index in range(sizes[folder])]
        posts += [listed[k] for k in _shuffled(len(listed), 0)]
    return [posts[k] for k in _shuffled(len(posts), 42)]


def _shuffled(n: int, seed: int) -> list[int]:
    indices = np.arange(n)
    np.random.RandomState(seed).shuffle(indices)
    return indices.tolist()


@dataset(
    "20news-sports",
    files={"train": "20news-bydate/20news-bydate-train", "test": "20news-bydate/20news-bydate-test"},
    source="http://qwone.com/~jason/20Newsgroups/ (20news-bydate.tar.gz)",
    licence="free for research, as its publishers allow",
    counts={"train": 1275, "dev": 319, "test": 399},
    preparation={
        "longer_than": 6,
        "shorter_than": 500,
        "minimum_document_frequency": 2,
        "embedding": {"kind": "file", "path": "vectors/wiki.simple.vec", "missing": "zeros"},
    },
)
def newsgroups(raw: Path, seed: int) -> Corpus:
    """Posts about baseball or hockey, without headers, footers and quotations.

    The splits are those of the study's Table 1, its training texts split again into train and dev, whatever the `seed`.
    Posts that are empty after cleaning are part of the draw; the study's later code drops them before, and so has other
    splits.
    """
    folders = list(declared_files(__file__, "20news-sports", raw).values())
    files = {(group, k): _posts(folders[k] / group, GROUPS[group][k]) for group in SPORTS for k in (0, 1)}
    posts = sorted((post for post in sklearn_order() if post[0] in SPORTS), key=lambda post: SPORTS.index(post[0]))
    labels = [SPORTS.index(group) for group, _, _ in posts]
    texts = [
        without_quotes(without_footer(without_headers(read_text(files[group, folder][index], "latin-1"))))
        for group, folder, index in shown(posts, "read posts", "post")
    ]
    tokens = [collapse_punctuation(words) for words in clean(texts)]
    splits = stratified_splits(labels, (0.2, SEED), (0.2, SEED))
    return Corpus(list(map(Example, splits, labels, tokens)), ["baseball", "hockey"])


def _posts(folder: Path, count: int) -> list[Path]:
    """The posts of a group, sorted by name; the study's splits can be redrawn only if none is missing."""
    posts = sorted(folder.iterdir(), key=lambda path: path.name) if folder.is_dir() else []
    if len(posts) != count:
        raise PlumblineError(
            f"'{folder}' contains {len(posts)} posts, but {count} were published, and the splits depend on all of "
            "them: unpack 20news-bydate.tar.gz again."
        )
    return posts
