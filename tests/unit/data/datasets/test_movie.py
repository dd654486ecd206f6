"""Film review snippets, on lines written in their form."""

from collections import Counter
from pathlib import Path

import pytest

from plumbline.config.recipes import Preparation
from plumbline.data.datasets.movie import movie
from plumbline.errors import PlumblineError
from plumbline.registry import Registry

LINES = ["1\t2.5\tIt's good.", "2\t-0.6\tToo  tepid, in 2002", "3\t0\tA film", "4\t-3.1\tBad", "5\t0.5\tFine\tfilm"]


def write(raw: Path, lines: list[str] = LINES, end: str = "\r\n") -> Path:
    (raw / "vader").mkdir()
    path = raw / "vader/movieReviewSnippets_GroundTruth.txt"
    path.write_bytes(end.join(lines).encode())
    return path


def test_labels_and_words(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    write(tmp_path)
    corpus = movie(tmp_path, 0)
    assert corpus.classes == ["negative", "positive"]
    assert [(example.label, example.tokens) for example in corpus.examples] == [
        (1, ["it", "'s", "good", "."]),
        (0, ["too", "tepid", ",", "in", "qqq"]),
        (0, ["bad"]),
        (1, ["fine", "film"]),
    ]
    assert corpus.dropped == {"rating within 0 of 0": {"all": 1}}


def test_minimum_rating_is_strict(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    write(tmp_path)
    corpus = movie(tmp_path, 0, minimum_rating=0.6)
    assert [example.tokens for example in corpus.examples] == [["it", "'s", "good", "."], ["bad"]]
    assert corpus.dropped == {"rating within 0.6 of 0": {"all": 3}}


def test_splits_follow_the_seed(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    write(tmp_path, [f"{n}\t1\tgood" for n in range(100)])
    first, again, other = ([e.split for e in movie(tmp_path, seed).examples] for seed in (0, 0, 1))
    assert Counter(first) == {"train": 80, "dev": 10, "test": 10}
    assert first == again != other


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("6 2.5 It is good", "has 1 of the 3 fields id, rating and text"),
        ("6\t2.5", "has 2 of the 3 fields id, rating and text"),
        ("6\tgood\tIt is good", "has 'good' instead of a rating from -4 to 4"),
        ("6\t25\tIt is good", "has '25' instead of a rating from -4 to 4"),
        ("6\tnan\tIt is good", "has 'nan' instead of a rating from -4 to 4"),
    ],
)
def test_malformed_lines_are_named(tmp_path: Path, line: str, fault: str) -> None:
    path = write(tmp_path, [*LINES, line])
    with pytest.raises(PlumblineError) as caught:
        movie(tmp_path, 0)
    assert str(caught.value) == f"'{path}', line 6 {fault}: correct the line or download the file again."


def test_faults_of_options_and_files(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"`minimum_rating` is -1; it must be at least 0 and below 4\."):
        movie(tmp_path, 0, minimum_rating=-1)
    with pytest.raises(
        PlumblineError, match=r"needs the file 'vader/movieReviewSnippets_GroundTruth\.txt'.*vaderSentiment"
    ):
        movie(tmp_path, 0)


def test_declared_preparation_is_a_recipe() -> None:
    Preparation(**Registry().get("dataset", "movie").preparation)
