"""Vocabulary, filters, samples and the faults of a corpus, on corpora computed by hand."""

from pathlib import Path
from typing import Any

import pytest

from plumbline.config.recipes import Preparation
from plumbline.data.corpus import Corpus, Example
from plumbline.data.prepare import Prepared, prepare
from plumbline.data.schemas import INSTANCES, VOCABULARY
from plumbline.data.vocabulary import EOS, MASK, PAD, SOS, SPECIALS, UNK, build_vocabulary, encode
from plumbline.errors import PlumblineError
from plumbline.store import read_table, write_table

CLASSES = ["negative", "positive"]


def text(length: int, word: str = "w") -> list[str]:
    return [word] * length


def corpus(lengths: dict[str, list[int]]) -> Corpus:
    """Texts of the given numbers of words per split, with labels 0, 1, 0, 1, ..."""
    return Corpus([Example(s, k % 2, text(n)) for s, ns in lengths.items() for k, n in enumerate(ns)], CLASSES)


def all_splits(lengths: list[int]) -> Corpus:
    return corpus({split: lengths for split in ("train", "dev", "test")})


def kept(prepared: Prepared, split: str) -> list[int]:
    columns = prepared.instances
    return [n for s, n in zip(columns["split"], columns["instance"], strict=True) if s == split]


def test_vocabulary_by_hand() -> None:
    tokens = [["b", "a", "b"], ["a", "c"], ["a", "b", "d"], ["c"]]
    vocabulary = build_vocabulary(tokens, 2)
    assert vocabulary.words == [*SPECIALS, "a", "b", "c"]
    assert vocabulary.document_frequency == [0, 0, 0, 0, 0, 3, 2, 2]
    assert (PAD, UNK, SOS, EOS, MASK) == (0, 1, 2, 3, 4)
    assert encode(["c", "d", "a"], vocabulary.ids) == [SOS, 7, UNK, 5, EOS]


def test_words_that_are_always_in_the_vocabulary_keep_their_frequency() -> None:
    vocabulary = build_vocabulary([["rare", "often"], ["often"]], 2, always=["rare", "unseen"])
    assert vocabulary.words[5:] == ["often", "rare", "unseen"]
    assert vocabulary.document_frequency[5:] == [2, 1, 0]


def test_a_spelled_out_special_token_is_unk() -> None:
    vocabulary = build_vocabulary([["<pad>", "a", "<mask>"]], 1)
    assert vocabulary.words == [*SPECIALS, "a"]
    assert encode(["<pad>", "a", "<mask>"], vocabulary.ids) == [SOS, UNK, 5, UNK, EOS]


def test_instances_by_hand(tmp_path: Path) -> None:
    examples = [
        Example("test", 1, ["good", "new"]),
        Example("train", 0, ["bad"]),
        Example("train", 1, ["good", "good"]),
        *(Example(split, label, ["good"]) for split, label in (("dev", 0), ("dev", 1), ("test", 0))),
    ]
    prepared = prepare(Corpus(examples, CLASSES), Preparation(), "tiny")
    assert prepared.words == [*SPECIALS, "bad", "good"]
    assert prepared.training_tokens == [["bad"], ["good", "good"]]
    assert prepared.instances["split"] == ["train", "train", "dev", "dev", "test", "test"]
    assert prepared.instances["instance"] == [0, 1, 0, 1, 0, 1]
    assert prepared.instances["label"] == [0, 1, 0, 1, 1, 0]
    assert prepared.instances["tokens"][4] == ["<sos>", "good", "new", "<eos>"]
    assert prepared.instances["ids"][4] == [SOS, 6, UNK, EOS]
    assert prepared.instances["maskable"][4] == [False, True, True, False]
    assert prepared.summary["splits"]["test"]["unknown_share"] == pytest.approx(1 / 3)
    for kind, columns in ((INSTANCES, prepared.instances), (VOCABULARY, prepared.vocabulary)):
        write_table(tmp_path / kind.name, kind, columns)
        assert read_table(tmp_path / kind.name, kind).num_rows == len(next(iter(columns.values())))


@pytest.mark.parametrize(
    ("recipe", "left"),
    [
        ({}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({"longer_than": 3}, [2, 3, 4, 5, 6, 7]),
        ({"shorter_than": 7}, [0, 1, 2, 3, 4, 5]),
        ({"longer_than": 3, "shorter_than": 7}, [2, 3, 4, 5]),
        ({"open_bound": "drop-extreme"}, [2, 3, 4, 5]),
        ({"longer_than": 4, "open_bound": "drop-extreme"}, [4, 5]),
        ({"shorter_than": 5, "open_bound": "drop-extreme"}, [2, 3]),
        ({"longer_than": 2, "shorter_than": 8, "open_bound": "drop-extreme"}, [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_length_filter_is_strict_and_keeps_instance_numbers(recipe: dict[str, Any], left: list[int]) -> None:
    prepared = prepare(all_splits([3, 3, 4, 4, 5, 5, 7, 7]), Preparation(**recipe), "lengths")
    assert [kept(prepared, split) for split in ("train", "dev", "test")] == [left] * 3


def test_open_bounds_are_those_of_each_split() -> None:
    lengths = {"train": [6, 6, 7, 7, 9], "dev": [6, 6, 8, 9], "test": [6, 6, 6, 20]}
    prepared = prepare(corpus(lengths), Preparation(longer_than=5, open_bound="drop-extreme"), "lengths")
    assert [kept(prepared, split) for split in lengths] == [[0, 1, 2, 3], [0, 1, 2], [0, 1, 2]]


def test_limit_draws_by_seed_and_keeps_order() -> None:
    many = all_splits([5] * 100)
    first, again, other = (prepare(many, Preparation(limit=20, seed=seed), "many") for seed in (0, 0, 1))
    for split in ("train", "dev", "test"):
        assert kept(first, split) == kept(again, split) == sorted(kept(first, split))
        assert len(kept(first, split)) == 20
    assert kept(first, "train") != kept(other, "train")
    fewer = corpus({"train": [5] * 60, "dev": [5] * 100, "test": [5] * 100})
    assert kept(prepare(fewer, Preparation(limit=20), "many"), "test") == kept(first, "test")


def test_vocabulary_is_of_the_training_texts_before_the_length_filter() -> None:
    examples = [*all_splits([6, 6]).examples, Example("train", 0, ["short"]), Example("dev", 0, text(6, "other"))]
    prepared = prepare(Corpus(examples, CLASSES), Preparation(longer_than=5), "words")
    assert prepared.words[5:] == ["w", "short"]
    sampled = prepare(Corpus(examples, CLASSES), Preparation(longer_than=5, limit=2), "words")
    assert sampled.words[5:] == ["w"], "a sample brings its own words alone"
    with_list = Corpus(examples, CLASSES, vocabulary=["unseen", "w"])
    prepared = prepare(with_list, Preparation(longer_than=5, minimum_document_frequency=2), "words")
    assert prepared.vocabulary["word"][5:] == ["w", "unseen"]
    assert prepared.vocabulary["document_frequency"][5:] == [2, 0]


def test_vocabulary_of_all_is_of_the_instances_of_every_split() -> None:
    pairs = [Example(s, k, ["w", f"{s}{k}"], ["v", s]) for s in ("train", "dev", "test") for k in (0, 1)]
    long = [Example(s, 0, ["w"] * 5 + ["long"], ["v"]) for s in ("train", "dev")]
    read = Corpus([*pairs, *long], CLASSES)
    prepared = prepare(read, Preparation(vocabulary_of="all", shorter_than=6), "words")
    assert prepared.words[5:] == (
        ["v", "w", "dev", "test", "train", "dev0", "dev1", "test0", "test1", "train0", "train1"]
    )
    assert prepared.vocabulary["document_frequency"][5:] == [6, 6, 2, 2, 2, 1, 1, 1, 1, 1, 1]
    assert prepared.summary["splits"]["test"]["unknown_share"] == 0
    frequent = prepare(read, Preparation(vocabulary_of="all", minimum_document_frequency=2), "words")
    assert frequent.words[5:] == ["v", "w", "dev", "long", "test", "train"]
    assert prepare(read, Preparation(), "words").words[5:] == ["v", "w", "train", "long", "train0", "train1"]


def test_pairs_are_filtered_by_their_total_length() -> None:
    lengths = [(3, 2), (1, 4), (2, 2), (4, 0), (5, 1), (2, 3)]
    pairs = [
        Example(s, k % 2, text(a), text(b + 1)) for s in ("train", "dev", "test") for k, (a, b) in enumerate(lengths)
    ]
    prepared = prepare(Corpus(pairs, CLASSES), Preparation(together_shorter_than=6), "pairs")
    assert kept(prepared, "train") == kept(prepared, "test") == [2, 3]
    both = prepare(Corpus(pairs, CLASSES), Preparation(together_shorter_than=7, longer_than=1), "pairs")
    assert kept(both, "dev") == [0, 2, 3, 5] and both.summary["dropped"] == {
        "length filter": {"train": 2, "dev": 2, "test": 2}
    }
    alone = prepare(all_splits([3, 3, 6, 5]), Preparation(together_shorter_than=6), "single")
    assert kept(alone, "train") == [0, 1, 3], "a text without a second one has its own words only"


def test_summary_counts_dropped_texts_by_reason() -> None:
    lengths = {"train": [6, 6, 0, 3, 6, 6], "dev": [6, 8], "test": [6, 6, 2]}
    read = corpus(lengths)
    read = Corpus(read.examples, CLASSES, dropped={"neutral": {"train": 7}})
    summary = prepare(read, Preparation(longer_than=5, limit=3, seed=9), "counted").summary
    assert summary["dropped"] == {
        "neutral": {"train": 7},
        "no words": {"train": 1},
        "length filter": {"train": 1, "test": 1},
        "limit": {"train": 1},
    }
    assert {key: summary[key] for key in ("dataset", "classes", "vocabulary_size", "seed")} == {
        "dataset": "counted",
        "classes": CLASSES,
        "vocabulary_size": 6,
        "seed": 9,
    }
    assert summary["splits"]["train"]["texts_per_class"] == {"negative": 3, "positive": 3}
    assert summary["splits"]["dev"] == {
        "texts": 2,
        "instances": 2,
        "texts_per_class": {"negative": 1, "positive": 1},
        "instances_per_class": {"negative": 1, "positive": 1},
        "mean_length": 7.0,
        "shortest": 6,
        "longest": 8,
        "unknown_share": 0.0,
    }
    assert read.dropped == {"neutral": {"train": 7}}


FAULTS: list[tuple[Corpus, dict[str, Any], str]] = [
    (
        corpus({"train": [6, 6], "test": [6, 6]}),
        {},
        "Dataset 'd', split 'dev' holds no text with words: the dataset's files or its reader lack it.",
    ),
    (
        corpus({"train": [6, 6], "dev": [0, 0], "test": [6, 6]}),
        {},
        "Dataset 'd', split 'dev' holds no text with words: the dataset's files or its reader lack it.",
    ),
    (
        Corpus([], CLASSES),
        {},
        "Dataset 'd', split 'train' holds no text with words: the dataset's files or its reader lack it.",
    ),
    (
        corpus({"train": [6, 6], "dev": [6, 6], "test": [6]}),
        {},
        "Dataset 'd', split 'test' holds no text of class 'positive': the dataset's files or its reader lack it.",
    ),
    (
        all_splits([4, 4]),
        {"longer_than": 5},
        "Dataset 'd', split 'train' holds no text with words after the length filter (more than 5 words): "
        "widen `longer_than`, `shorter_than`, `together_shorter_than` or `open_bound`.",
    ),
    (
        corpus({"train": [6, 6], "dev": [9, 6], "test": [6, 6]}),
        {"longer_than": 5, "shorter_than": 9},
        "Dataset 'd', split 'dev' holds no text of class 'negative' after the length filter (more than 5 words, "
        "fewer than 9 words): widen `longer_than`, `shorter_than`, `together_shorter_than` or `open_bound`.",
    ),
    (
        corpus({"train": [6, 6, 7, 8], "dev": [6, 7, 6], "test": [6, 6]}),
        {"longer_than": 5, "open_bound": "drop-extreme"},
        "Dataset 'd', split 'dev' holds no text of class 'positive' after the length filter (more than 5 words, "
        "open bounds drop the extreme): widen `longer_than`, `shorter_than`, `together_shorter_than` or `open_bound`.",
    ),
    (
        all_splits([4, 4]),
        {"together_shorter_than": 3},
        "Dataset 'd', split 'train' holds no text with words after the length filter (together fewer than 3 words): "
        "widen `longer_than`, `shorter_than`, `together_shorter_than` or `open_bound`.",
    ),
    (
        corpus({"train": [6, 6], "dev": [6, 6], "test": [6, 6]}),
        {"limit": 1, "seed": 0},
        "Dataset 'd', split 'train' holds no text of class 'negative' after the limit of 1: raise `limit`.",
    ),
    (
        Corpus([*all_splits([6, 6]).examples, Example("valid", 0, ["w"])], CLASSES),
        {},
        "Dataset 'd', split 'valid', text 6: the split must be one of train, dev, test.",
    ),
    (
        Corpus([Example("train", 2, ["w"])], CLASSES),
        {},
        "Dataset 'd', split 'train', text 0: label 2 is not one of the 2 classes (negative, positive).",
    ),
    (
        Corpus([Example("train", 0, ["w", ""])], CLASSES),
        {},
        "Dataset 'd', split 'train', text 0: a word is the empty string; the dataset's reader must leave it out.",
    ),
]


@pytest.mark.parametrize(("faulty", "recipe", "sentence"), FAULTS)
def test_faults_are_one_sentence(faulty: Corpus, recipe: dict[str, Any], sentence: str) -> None:
    with pytest.raises(PlumblineError) as caught:
        prepare(faulty, Preparation(**recipe), "d")
    assert str(caught.value) == sentence
