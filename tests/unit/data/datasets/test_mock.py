"""Mock data: counts, places and word lists, on small lexicons in their publishers' forms."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from plumbline.config.recipes import Preparation
from plumbline.data.corpus import Corpus
from plumbline.data.datasets.mock import FILLER, mock, opinion_words, vader_words
from plumbline.data.prepare import prepare
from plumbline.errors import PlumblineError
from plumbline.registry import Registry

NEGATIVE, POSITIVE = ["bad", "awful", "poor"], ["good", "fine"]
SMALL: dict[str, Any] = {"train": 200, "dev": 20, "test": 40}
NAMES = ["mock-1", "mock-10", "mock-1q", "mock-2", "mock-2q", "mock-3q", "mock-4q", "mock-5"]


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    (tmp_path / "vader").mkdir()
    rows = [*((word, -1.5) for word in NEGATIVE), *((word, 2.0) for word in POSITIVE)]
    rows += [(":-)", 1.3), ("b4", -1.0), ("neutral", 0.0), ("GOOD", 1.0), ("self-love", 1.0)]
    lines = "".join(f"{word}\t{valence}\t0.8\t[1, 1]\n" for word, valence in rows)
    (tmp_path / "vader/vader_lexicon.txt").write_text(lines)
    (tmp_path / "opinion_lexicon").mkdir()
    for sign, words in (("positive", ["a+", "good"]), ("negative", ["na\u00efve", "2-faced"])):
        content = ";;;\n; Opinion Lexicon\n;;;\n\n" + "\n".join(words) + "\n"
        (tmp_path / f"opinion_lexicon/{sign}-words.txt").write_bytes(content.encode("latin-1"))
    return tmp_path


def declared(name: str, raw: Path, seed: int = 0, **options: Any) -> Corpus:
    presets = {key: option.default for key, option in Registry().get("dataset", name).options.items()}
    return mock(raw, seed, **{**presets, **options})


def test_word_lists(raw: Path) -> None:
    assert vader_words(raw) == (NEGATIVE, POSITIVE)
    assert opinion_words(raw) == (["na\u00efve", "2-faced"], ["a+", "good"])


def test_all_are_declared_with_a_recipe() -> None:
    assert [name for name in Registry().names("dataset") if name.startswith("mock")] == NAMES
    for name in NAMES:
        declaration = Registry().get("dataset", name)
        assert declaration.source and declaration.licence
        Preparation(**declaration.preparation)


@pytest.mark.parametrize(("name", "count"), [("mock-1", 1), ("mock-2", 2), ("mock-5", 5), ("mock-10", 10)])
def test_a_number_of_informative_words(raw: Path, name: str, count: int) -> None:
    corpus = declared(name, raw, **SMALL)
    for example in corpus.examples:
        informative = [word for word in example.tokens if word != FILLER]
        assert len(informative) == count and set(informative) <= set([NEGATIVE, POSITIVE][example.label])
        assert 50 <= len(example.tokens) <= 100
    counts = Counter((example.split, example.label) for example in corpus.examples)
    assert counts == {
        ("train", 0): 100,
        ("train", 1): 100,
        ("dev", 0): 10,
        ("dev", 1): 10,
        ("test", 0): 20,
        ("test", 1): 20,
    }


@pytest.mark.parametrize(("name", "count"), [("mock-1q", 13), ("mock-2q", 25), ("mock-3q", 38), ("mock-4q", 50)])
def test_a_share_of_informative_words_is_rounded_half_up(raw: Path, name: str, count: int) -> None:
    corpus = declared(name, raw, **SMALL, shortest=50, longest=50)
    assert {sum(word != FILLER for word in example.tokens) for example in corpus.examples} == {count}


def test_a_share_is_at_least_one_word(raw: Path) -> None:
    corpus = declared("mock-1q", raw, **SMALL, shortest=1, longest=1)
    assert all(example.tokens != [FILLER] for example in corpus.examples)


def test_lengths_places_and_labels_are_drawn_evenly(raw: Path) -> None:
    corpus = declared("mock-1", raw, train=4000, dev=2, test=2, shortest=5, longest=8)
    training = [example for example in corpus.examples if example.split == "train"]
    lengths = Counter(len(example.tokens) for example in training)
    assert set(lengths) == {5, 6, 7, 8} and min(lengths.values()) > 900
    places = Counter(next(k for k, w in enumerate(e.tokens) if w != FILLER) for e in training if len(e.tokens) == 5)
    assert set(places) == set(range(5)) and min(places.values()) > 150
    assert 0 < sum(example.label for example in training[:100]) < 100


@pytest.mark.parametrize(
    ("position", "length", "count", "window"),
    [
        ("start", 12, 2, range(4)),
        ("middle", 12, 2, range(4, 8)),
        ("end", 12, 2, range(8, 12)),
        ("start", 11, 2, range(3)),
        ("middle", 11, 2, range(4, 7)),
        ("end", 11, 2, range(8, 11)),
        ("start", 12, 6, range(6)),
        ("middle", 12, 6, range(3, 9)),
        ("middle", 12, 7, range(2, 9)),
        ("end", 12, 6, range(6, 12)),
        ("middle", 12, 12, range(12)),
        ("end", 1, 1, range(1)),
        ("any", 12, 2, range(12)),
    ],
)
def test_position_of_informative_words(raw: Path, position: str, length: int, count: int, window: range) -> None:
    options = SMALL | {"shortest": length, "longest": length, "informative": count, "position": position}
    found = [
        [place for place, word in enumerate(example.tokens) if word != FILLER]
        for example in declared("mock-1", raw, **options).examples
    ]
    assert {len(places) for places in found} == {count}
    assert {place for places in found for place in places} == set(window)


def test_strength_of_informative_words(raw: Path) -> None:
    rows = {"bad": -1.0, "awful": -3.0, "poor": -2.0, "sad": -2.0, "good": 1.0, "great": 3.0, "fine": 1.5, "nice": 1.2}
    lines = [*(f"{word}\t{valence}" for word, valence in rows.items()), "GOOD\t4.0"]
    (raw / "vader/vader_lexicon.txt").write_text("\n".join(lines))
    # The medians are 2 and 1.35; the second GOOD does not count.
    lists = {"weak": (["bad"], ["good", "nice"]), "strong": (["awful", "poor", "sad"], ["great", "fine"])}
    for strength, expected in lists.items():
        assert vader_words(raw, strength) == expected
        corpus = declared("mock-2", raw, **SMALL, strength=strength)
        assert set(corpus.vocabulary or []) == {FILLER, *expected[0], *expected[1]}
        for label in (0, 1):
            used = {word for example in corpus.examples if example.label == label for word in example.tokens}
            assert used == {FILLER, *expected[label]}


def test_strength_needs_valences_that_differ(raw: Path) -> None:
    with pytest.raises(
        PlumblineError, match=(r"vader_lexicon.txt' contains no weak negative word; download the file again\.")
    ):
        declared("mock-1", raw, strength="weak")


def test_seed_and_sizes(raw: Path) -> None:
    first, again, other = (declared("mock-1", raw, seed, **SMALL).examples for seed in (0, 0, 1))
    assert first == again != other
    larger = declared("mock-1", raw, **{**SMALL, "train": 300}).examples
    assert [e for e in larger if e.split == "test"] == [e for e in first if e.split == "test"]


def test_vocabulary_holds_both_lists(raw: Path) -> None:
    tiny = {"train": 2, "dev": 2, "test": 2}
    prepared = prepare(declared("mock-1", raw, **tiny), Preparation(minimum_document_frequency=2), "mock-1")
    assert set(prepared.words[5:]) == {FILLER, *NEGATIVE, *POSITIVE}
    corpus = declared("mock-1", raw, **tiny, words="opinion-lexicon")
    assert set(corpus.vocabulary or []) == {FILLER, "na\u00efve", "2-faced", "a+", "good"}
    assert declared("mock-1", raw, **tiny, vocabulary="training").vocabulary is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"informative": 0}, "`informative` is 0 and `share` is 0; set either `informative`"),
        ({"share": 0.5}, "`informative` is 1 and `share` is 0.5; set either `informative`"),
        ({"informative": 0, "share": 1.5}, "`informative` is 0 and `share` is 1.5; set either `informative`"),
        (
            {"informative": 51},
            "`informative` is 51, but the shortest texts have only 50 words; lower it or raise `shortest`.",
        ),
        ({"shortest": 0}, "`shortest` is 0 and `longest` is 100; texts need 1 <= shortest <= longest."),
        (
            {"strength": "weak", "words": "opinion-lexicon"},
            "`strength` is weak, but the words of `opinion-lexicon` have no valence; set it to any.",
        ),
        ({"longest": 49}, "`shortest` is 50 and `longest` is 49; texts need 1 <= shortest <= longest."),
    ],
)
def test_impossible_options_are_refused(raw: Path, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(PlumblineError) as caught:
        declared("mock-1", raw, **options)
    assert str(caught.value).startswith(sentence)


def test_only_the_files_of_the_chosen_words_are_needed(raw: Path) -> None:
    (raw / "opinion_lexicon/positive-words.txt").unlink()
    declared("mock-1", raw, **SMALL)
    with pytest.raises(PlumblineError, match=r"needs the file 'opinion_lexicon/positive-words\.txt', which"):
        declared("mock-1", raw, **SMALL, words="opinion-lexicon")


def test_damaged_lexicons_are_refused(raw: Path) -> None:
    path = raw / "vader/vader_lexicon.txt"
    path.write_text("good\t1.9\t0.9\nbad\n")
    with pytest.raises(
        PlumblineError, match=r"vader_lexicon.txt', line 2: no valence follows 'bad'; download the file again\."
    ):
        declared("mock-1", raw)
    path.write_text("good\t1.9\t0.9\n")
    with pytest.raises(
        PlumblineError, match=(r"vader_lexicon.txt' contains no negative word; download the file again\.")
    ):
        declared("mock-1", raw)
