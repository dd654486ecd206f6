"""Beer reviews, in a file in the format of Lei et al."""

import os
from collections import Counter
from pathlib import Path

import pytest

from plumbline.config.recipes import Preparation
from plumbline.data.corpus import Corpus
from plumbline.data.datasets.beer import beer
from plumbline.data.manipulations.texts import ARTICLES
from plumbline.data.prepare import prepare
from plumbline.errors import PlumblineError
from plumbline.registry import Registry


def write(raw: Path, scores: list[str], aspect: int = 0) -> Path:
    """A review of its number's name for each line of scores."""
    path = raw / f"beer/reviews.aspect{aspect}.train.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{own}\tthe number {number} Is a beer ." for number, own in enumerate(scores)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def scored(*firsts: float) -> list[str]:
    return [f"{first:.2f} 0.50 0.60 0.70 0.80" for first in firsts]


def numbers(corpus: Corpus, split: str | None = None) -> list[int]:
    return [int(e.tokens[2]) for e in corpus.examples if split in (None, e.split)]


def test_labels_are_those_of_the_listed_scores(tmp_path: Path) -> None:
    write(tmp_path, scored(*[0.1, 0.2, 0.3, 0.9, 0.4, 0.8, 1.0] * 3))
    corpus = beer(tmp_path, 0)
    assert corpus.classes == ["negative", "positive"]
    assert all((number % 7 == 3) == bool(e.label) for number, e in zip(numbers(corpus), corpus.examples, strict=True))
    # Nine are negative and three positive, so that three of each stay.
    assert Counter((e.split, e.label) for e in corpus.examples) == {
        (split, label): 1 for split in ("train", "dev", "test") for label in (0, 1)
    }
    assert corpus.dropped == {"other scores": {"all": 9}, "not drawn": {"all": 6}}
    assert " ".join(corpus.examples[0].tokens) == f"the number {numbers(corpus)[0]} Is a beer ."


def test_splits_are_balanced_and_of_ten_one_and_one_parts_of_twelve(tmp_path: Path) -> None:
    write(tmp_path, scored(*[0.2, 0.9, 0.9] * 60))
    corpus = beer(tmp_path, 0, per_class=48)
    counts = Counter((e.split, e.label) for e in corpus.examples)
    assert counts == {("train", 0): 40, ("train", 1): 40, ("dev", 0): 4, ("dev", 1): 4, ("test", 0): 4, ("test", 1): 4}
    assert len(set(numbers(corpus))) == 96
    assert numbers(beer(tmp_path, 0, per_class=48)) == numbers(corpus) != numbers(beer(tmp_path, 1, per_class=48))


def test_the_study_has_ten_thousand_and_two_times_one_thousand(tmp_path: Path) -> None:
    write(tmp_path, scored(*[0.1, 0.9] * 6100))
    counts = Counter(e.split for e in beer(tmp_path, 0).examples)
    assert counts == Registry().get("dataset", "beer").counts == {"train": 10000, "dev": 1000, "test": 1000}


def test_an_aspect_has_a_score_and_a_file_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, ["0.9 0.9 0.1 0.9 0.9"] * 3 + ["0.1 0.1 0.9 0.1 0.1"] * 3, aspect=2)
    labels = {int(e.tokens[2]): e.label for e in beer(tmp_path, 0, aspect=2).examples}
    assert labels == {0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 1}
    with pytest.raises(PlumblineError, match=r"needs the file 'beer/reviews\.aspect0\.train\.txt', which"):
        beer(tmp_path, 0)


def test_reviews_are_truncated(tmp_path: Path) -> None:
    path = write(tmp_path, scored(*[0.9, 0.1] * 3))
    path.write_text(path.read_text() + f"{scored(0.9)[0]}\t{'word ' * 300}\n")
    examples = beer(tmp_path, 0, negative=[0.1], longest=4).examples
    assert {len(e.tokens) for e in examples} == {4}
    assert max(len(e.tokens) for seed in range(9) for e in beer(tmp_path, seed).examples) == 256


def test_rare_scores_are_refused_with_a_list_of_the_others(tmp_path: Path) -> None:
    path = write(tmp_path, scored(*[0.2] * 3, *[0.6] * 4, *[1.0] * 5))
    with pytest.raises(PlumblineError) as caught:
        beer(tmp_path, 0)
    assert str(caught.value) == (
        f"`positive` lists the scores 0.9, but only 0 reviews of '{path}' have one of them for aspect 0; add some of "
        "the other scores (number of reviews): 0.6 (4), 1 (5)."
    )
    assert len(beer(tmp_path, 0, positive=[1.0]).examples) == 6
    with pytest.raises(PlumblineError, match=r"The score 0\.6 is both in `positive` and in `negative`"):
        beer(tmp_path, 0, positive=[0.6, 1.0], negative=[0.2, 0.6])


@pytest.mark.parametrize("line", ["0.9 0.9 0.9 0.9\tfour", "0.9 0.9 0.9 0.9 9\tnine", "good 1 1 1 1\tword"])
def test_faults_of_a_line_are_named(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, scored(0.9))
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(PlumblineError, match=r"line 2 does not start with 5 scores from 0 to 1 and a tab"):
        beer(tmp_path, 0)


def test_declared_preparation_is_a_recipe() -> None:
    recipe = Preparation(**Registry().get("dataset", "beer").preparation)
    assert (recipe.embedding.trainable, recipe.embedding.missing, recipe.embedding.dimensions) == (
        False,
        "uniform",
        200,
    )


@pytest.mark.realdata
def test_reviews_of_another_site(tmp_path: Path) -> None:
    """RateBeer's scores of the look are 0.2, 0.4, … 1; articles are about as frequent as published, 7.9%."""
    raw = Path(os.environ.get("PLUMBLINE_DATA", tmp_path))
    if not (raw / "beer/reviews.aspect0.train.txt").exists():
        pytest.skip("the reviews are not in the folder that PLUMBLINE_DATA names")
    corpus = beer(raw, 0, positive=[0.8, 1.0], negative=[0.2, 0.4, 0.6])
    declaration = Registry().get("dataset", "beer")
    summary = prepare(corpus, Preparation(), "beer", declaration.counts).summary
    assert summary["partial"]["train"] == {"texts": 7402, "published": 10000}
    words = [word for example in corpus.examples for word in example.tokens]
    assert sum(word in ARTICLES for word in words) / len(words) == pytest.approx(0.077, abs=0.001)
