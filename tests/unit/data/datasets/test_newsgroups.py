"""20 Newsgroups: cleaning and order are scikit-learn's, on small groups."""

import codecs
import pickle
from pathlib import Path

import pytest

from plumbline.config.recipes import Preparation
from plumbline.data.datasets import newsgroups as module
from plumbline.data.datasets.newsgroups import (
    GROUPS,
    SPORTS,
    collapse_punctuation,
    newsgroups,
    sklearn_order,
    without_footer,
    without_headers,
    without_quotes,
)
from plumbline.errors import PlumblineError
from plumbline.registry import Registry

HEADER = "From: someone\nSubject: a game\n\n"
BODIES = [
    "They won.\n\nIt was late.\n\n-- \nA signature",
    "In article <1> he writes:\n> a line\n| another\nMy own words > here\n",
    "--\nAll footer",
    "One line",
    "Text\n----\nfooter\n\n\n",
    "",
    "\n\n",
    "He said: no\nQuoted from a book\nand so\n \nfoot",
    "\n\nlate start\n\nend",
]


def test_cleaning_by_hand() -> None:
    assert without_headers(HEADER + "Hello\n\nthere") == "Hello\n\nthere"
    assert without_headers("no blank line") == ""
    assert without_footer("Text\nmore\n----\nfooter\n") == "Text\nmore"
    assert without_footer("--\nall") == "--\nall"
    assert without_quotes("a\n> b\nhe wrote: c\nd > e") == "a\nd > e"


def test_cleaning_is_that_of_scikit_learn() -> None:
    from sklearn.datasets import _twenty_newsgroups as theirs

    for text in [*BODIES, *(HEADER + body for body in BODIES)]:
        assert without_headers(text) == theirs.strip_newsgroup_header(text)
        assert without_footer(text) == theirs.strip_newsgroup_footer(text)
        assert without_quotes(text) == theirs.strip_newsgroup_quoting(text)


def test_runs_of_punctuation_are_collapsed() -> None:
    words = ["it", "'s", "good", ",", "he", "said", "..."]
    assert collapse_punctuation(words) == ["it", "'", "s", "good", "he", "said", "."]
    assert collapse_punctuation(["a", "well-known", "b(c"]) == ["a", "well", "-", "known", "b", "(", "c"]
    assert collapse_punctuation(["!", "?"]) == ["?"]
    assert collapse_punctuation([]) == []


def test_sizes_are_the_published_ones() -> None:
    assert len(GROUPS) == 20 and list(GROUPS) == sorted(GROUPS)
    assert [sum(sizes[folder] for sizes in GROUPS.values()) for folder in (0, 1)] == [11314, 7532]
    order = sklearn_order()
    assert len(set(order)) == len(order) == 18846


def letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All groups with a few posts each; the second post of each is empty."""
    sizes = {group: (5 + k % 3, 3 + k % 2) for k, group in enumerate(GROUPS)}
    monkeypatch.setattr(module, "GROUPS", sizes)
    for folder, part in enumerate(("train", "test")):
        for k, group in enumerate(sizes):
            posts = tmp_path / f"20news-bydate/20news-bydate-{part}" / group
            posts.mkdir(parents=True)
            for n in range(sizes[group][folder]):
                body = f"Caf\u00e9 {letters(k)} {part} {letters(n)}" if n != 1 else "> nothing"
                (posts / str(100 - 7 * n)).write_bytes((HEADER + body).encode("latin-1"))
    return tmp_path


def test_order_and_splits_are_those_of_the_study(small: Path) -> None:
    """The study's steps with scikit-learn itself, which here reads what it has cached."""
    pytest.importorskip("spacy")
    from sklearn.datasets import fetch_20newsgroups, load_files
    from sklearn.model_selection import train_test_split

    folders = {part: small / f"20news-bydate/20news-bydate-{part}" for part in ("train", "test")}
    cached = {part: load_files(folder, encoding="latin1") for part, folder in folders.items()}
    (small / "20news-bydate_py3.pkz").write_bytes(codecs.encode(pickle.dumps(cached), "zlib_codec"))
    remove = ("headers", "footers", "quotes")
    all_ = fetch_20newsgroups(data_home=small, subset="all", remove=remove, download_if_missing=False)
    labels = [list(all_.target_names).index(group) for group in SPORTS]
    strings, target = zip(
        *((all_.data[k], side) for side, label in enumerate(labels) for k in (all_.target == label).nonzero()[0]),
        strict=True,
    )
    training, test = train_test_split(range(len(strings)), stratify=target, test_size=0.2, random_state=13478)
    train, dev = train_test_split(training, stratify=[target[k] for k in training], test_size=0.2, random_state=13478)
    splits = {"train": train, "dev": dev, "test": test}

    corpus = newsgroups(small, 0)
    assert corpus.classes == ["baseball", "hockey"]
    assert [" ".join(example.tokens) for example in corpus.examples] == [text.lower() for text in strings]
    assert [example.label for example in corpus.examples] == list(target)
    for split, places in splits.items():
        assert [k for k, example in enumerate(corpus.examples) if example.split == split] == sorted(places)
    assert sum(not example.tokens for example in corpus.examples) == 4


def test_missing_posts_are_refused(small: Path) -> None:
    folder = small / "20news-bydate/20news-bydate-test" / SPORTS[1]
    count = len(list(folder.iterdir()))
    (folder / "100").unlink()
    with pytest.raises(PlumblineError) as caught:
        newsgroups(small, 0)
    assert str(caught.value) == (
        f"'{folder}' contains {count - 1} posts, but {count} were published, and the splits depend on all of them: "
        "unpack 20news-bydate.tar.gz again."
    )
    folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(PlumblineError, match=r"rec\.sport\.hockey' contains 0 posts, but"):
        newsgroups(small, 0)


def test_missing_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"needs the files '20news-bydate/20news-bydate-train' and '20news"):
        newsgroups(tmp_path, 0)


def test_declared_preparation_is_a_recipe() -> None:
    recipe = Preparation(**Registry().get("dataset", "20news-sports").preparation)
    assert (recipe.longer_than, recipe.shorter_than, recipe.minimum_document_frequency) == (6, 500, 2)
