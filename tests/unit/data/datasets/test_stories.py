"""Generated stories: the marked sentence answers, and guessing does not."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from plumbline.config.recipes import Preparation, Training
from plumbline.data.corpus import Corpus, Example
from plumbline.data.datasets.stories import stories
from plumbline.data.prepare import prepare
from plumbline.errors import PlumblineError
from plumbline.registry import Registry

SMALL: dict[str, Any] = {"train": 300, "dev": 20, "test": 40}


def sentences(example: Example) -> list[list[str]]:
    return [sentence.split() for sentence in " ".join(example.tokens).split(" . ")]


def test_the_marked_sentence_is_the_last_about_the_person_and_holds_the_answer(tmp_path: Path) -> None:
    corpus = stories(tmp_path, 0, **SMALL)
    for example in corpus.examples:
        parts = sentences(example)
        assert 3 <= len(parts) <= 8
        assert all(len(sentence) == 5 and sentence[2:4] == ["to", "the"] for sentence in parts)
        assert example.pair is not None and example.pair[:2] == ["Where", "is"]
        about = [sentence for sentence in parts if sentence[0] == example.pair[2]]
        assert example.evidence is not None
        marked = [word for word, mark in zip(example.tokens, example.evidence, strict=True) if mark]
        assert marked == about[-1] and marked[-1] == corpus.classes[example.label]
        # Nobody goes where they already are.
        assert all(one[-1] != other[-1] for one, other in pairwise(about))


def test_guessing_scores_little(tmp_path: Path) -> None:
    corpus = stories(tmp_path, 0)
    training = [example for example in corpus.examples if example.split == "train"]
    for place in (0, -1):
        guesses = [sentences(example)[place][-1] == corpus.classes[example.label] for example in training]
        assert sum(guesses) / len(guesses) < 0.5
    frequency = Counter(example.label for example in training)
    assert max(frequency.values()) / len(training) < 0.2


def test_sizes_people_and_places(tmp_path: Path) -> None:
    corpus = stories(tmp_path, 0, **SMALL, people=2, places=3, shortest=1, longest=2)
    assert Counter(example.split for example in corpus.examples) == {"train": 300, "dev": 20, "test": 40}
    assert corpus.classes == ["attic", "bakery", "cellar"]
    assert {example.tokens[0] for example in corpus.examples} == {"Anna", "Ben"}
    assert {len(sentences(example)) for example in corpus.examples} == {1, 2}


def test_seed_and_sizes(tmp_path: Path) -> None:
    first, again, other = (stories(tmp_path, seed, **SMALL).examples for seed in (0, 0, 1))
    assert first == again != other
    larger = stories(tmp_path, 0, **{**SMALL, "train": 400}).examples
    assert [e for e in larger if e.split == "test"] == [e for e in first if e.split == "test"]


def test_all_words_are_in_the_vocabulary(tmp_path: Path) -> None:
    corpus = stories(tmp_path, 0, train=1, dev=1, test=1)
    prepared = prepare(corpus, Preparation(), "stories")
    assert len(prepared.words) == 5 + 4 + 6 + 4 + 5
    full = stories(tmp_path, 0, **SMALL)
    assert {word for e in full.examples for word in (*e.tokens, *(e.pair or []))} == set(full.vocabulary or [])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"people": 9}, "`people` is 9; it must be from 2 to 8."),
        ({"places": 1}, "`places` is 1; it must be from 2 to 10."),
        ({"shortest": 0}, "`shortest` is 0 and `longest` is 8; stories need 1 <= shortest <= longest."),
        ({"longest": 2}, "`shortest` is 3 and `longest` is 2; stories need 1 <= shortest <= longest."),
    ],
)
def test_impossible_options_are_refused(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(PlumblineError) as caught:
        stories(tmp_path, 0, **options)
    assert str(caught.value) == sentence


def test_declared_recipes(tmp_path: Path) -> None:
    declaration = Registry().get("dataset", "stories")
    Preparation(**declaration.preparation)
    training = Training(**declaration.training)
    assert (declaration.task, declaration.files, declaration.licence) == ("question answering", {}, "MIT")
    assert (training.epochs, training.batch_size) == (20, 50)
    assert isinstance(stories(tmp_path, 0, **SMALL), Corpus)
