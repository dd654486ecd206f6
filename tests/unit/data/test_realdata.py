"""The publishers' own files, in the folder that the variable PLUMBLINE_DATA names."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plumbline.config.recipes import Embedding, Preparation
from plumbline.data.corpus import Corpus
from plumbline.data.datasets import newsgroups as news
from plumbline.data.datasets.babi import babi
from plumbline.data.datasets.birds import birds
from plumbline.data.datasets.imdb import imdb
from plumbline.data.datasets.mock import opinion_words
from plumbline.data.datasets.movie import movie
from plumbline.data.datasets.quora import quora
from plumbline.data.datasets.snli import snli
from plumbline.data.datasets.sst import sst
from plumbline.data.embeddings import embed
from plumbline.data.images import prepare_images
from plumbline.data.prepare import prepare
from plumbline.registry import Registry

pytestmark = pytest.mark.realdata


def needed(path: str) -> Path:
    """The raw folder; skip where it, or the needed file in it, is missing."""
    folder = os.environ.get("PLUMBLINE_DATA")
    if not folder:
        pytest.skip("PLUMBLINE_DATA is not set")
    if not (Path(folder) / path).exists():
        pytest.skip(f"{path} is not in the folder that PLUMBLINE_DATA names")
    return Path(folder)


def summary(corpus: Corpus, name: str, **changes: Any) -> dict[str, Any]:
    """The summary of a corpus prepared by its declared recipe."""
    declaration = Registry().get("dataset", name)
    return prepare(corpus, Preparation(**declaration.preparation, **changes), name, declaration.counts).summary


def per_class(splits: dict[str, Any], *names: str) -> Counter[str]:
    return sum((Counter(splits[name]["instances_per_class"]) for name in names), Counter())


@pytest.fixture(scope="module")
def treebank() -> Corpus:
    return sst(needed("sst/trees/train.txt"), 0)


def test_sst_has_the_published_counts(treebank: Corpus) -> None:
    """Jain & Wallace, Table 1: their filter also drops the longest sentence of each split."""
    summary = prepare(treebank, Preparation(longer_than=5, open_bound="drop-extreme"), "sst").summary
    splits = summary["splits"]
    assert [splits[split]["texts"] for split in ("train", "dev", "test")] == [6920, 872, 1821]
    assert splits["train"]["instances_per_class"] == {"negative": 3034, "positive": 3321}
    assert splits["test"]["instances_per_class"] == {"negative": 863, "positive": 862}
    assert splits["train"]["mean_length"] == pytest.approx(18.7, abs=0.05)
    assert summary["dropped"]["neutral"] == {"train": 1624, "dev": 229, "test": 389}


def test_sst_keeps_the_longest_sentences_by_default(treebank: Corpus) -> None:
    splits = prepare(treebank, Preparation(longer_than=5), "sst").summary["splits"]
    assert splits["train"]["instances_per_class"] == {"negative": 3035, "positive": 3321}
    assert splits["test"]["instances_per_class"] == {"negative": 863, "positive": 863}


def test_sst_filtered_before_cleaning_has_the_counts_and_length_of_recursive_roar() -> None:
    corpus = sst(needed("sst/trees/train.txt"), 0, leaves_over=5)
    splits = prepare(corpus, Preparation(), "sst").summary["splits"]
    counts = {split: record["instances"] for split, record in splits.items()}
    assert counts == {"train": 6579, "dev": 848, "test": 1776}
    words = sum(record["mean_length"] * record["instances"] for record in splits.values())
    assert round(words / sum(counts.values()) + 2) == 20


def test_raw_sst_has_all_leaves_of_the_trees_that_are_not_neutral() -> None:
    corpus = sst(needed("sst/trees/train.txt"), 0, tokens="raw")
    found = summary(corpus, "sst-2")
    counts = {split: record["instances"] for split, record in found["splits"].items()}
    assert counts == {"train": 6920, "dev": 872, "test": 1821}
    assert found["dropped"] == {"neutral": {"train": 1624, "dev": 229, "test": 389}}
    assert " ".join(corpus.examples[0].tokens[:6]) == "The Rock is destined to be"
    leaves = {word for example in corpus.examples for word in example.tokens}
    assert leaves >= {"-LRB-", "``", ",", "n't"} and found["vocabulary_size"] == len(leaves) + 5


def test_glove_covers_sst(treebank: Corpus) -> None:
    """The subset of 33,860 words that is at hand covers less than the whole file would."""
    raw = needed("vectors/glove.840B.300d.txt")
    prepared = prepare(treebank, Preparation(longer_than=5), "sst")
    recipe = Embedding(kind="file", path="vectors/glove.840B.300d.txt", dimensions=300)
    matrix, record = embed(prepared.words, prepared.training_tokens, recipe, raw)
    assert matrix.shape == (len(prepared.words), 300) and np.isfinite(matrix).all()
    assert not matrix[:5].any()
    assert record["types_found_share"] > 0.7
    assert record["training_tokens_found_share"] > 0.95


def test_opinion_lexicon_has_the_published_sizes() -> None:
    negative, positive = opinion_words(needed("opinion_lexicon/positive-words.txt"))
    assert (len(negative), len(positive)) == (4783, 2006)


def test_movie_has_the_published_counts() -> None:
    corpus = movie(needed("vader/movieReviewSnippets_GroundTruth.txt"), 0)
    assert sum(example.label for example in corpus.examples) == 5242
    assert len(corpus.examples) + corpus.dropped["rating within 0 of 0"]["all"] == 10605


@pytest.fixture(scope="module")
def listed_reviews() -> Corpus:
    return imdb(needed("imdb/jain_wallace_split.tsv"), 0, split="listed")


def test_imdb_has_the_published_counts(listed_reviews: Corpus) -> None:
    found = summary(listed_reviews, "imdb")
    assert [found["splits"][split]["texts"] for split in ("train", "dev", "test")] == [17212, 4304, 4363]
    assert found["splits"]["train"]["instances_per_class"] == {"negative": 8673, "positive": 8539}
    assert found["partial"] == {}


def test_imdb_words_are_those_of_the_study(listed_reviews: Corpus) -> None:
    """The statistics that its code recorded of all training reviews: 10854 + 10643, 179.65 words, 14355 words known."""
    training = [example for example in listed_reviews.examples if example.split != "test"]
    shorter = [example for example in training if 6 < len(example.tokens) < 399]
    assert Counter(example.label for example in shorter) == {0: 10854, 1: 10643}
    assert np.mean([len(example.tokens) for example in shorter]) == pytest.approx(179.650974554589, rel=1e-12)
    frequency = Counter(word for example in training for word in set(example.tokens))
    assert 4 + sum(count >= 10 for count in frequency.values()) == 14355


def test_imdb_reviews_of_up_to_240_words(listed_reviews: Corpus) -> None:
    """The study's 3482 test reviews need all training reviews: without the words of the long ones, seven more fit."""
    training = needed("imdb/aclImdb/train") / "imdb/aclImdb/train"
    reviews = sum(1 for _ in training.glob("*/*.txt"))
    if reviews not in (25000, 21516):
        pytest.skip("other training reviews are there")
    found = summary(listed_reviews, "imdb-240")
    counts = {split: record["instances"] for split, record in found["splits"].items()}
    assert counts == {"train": 13427, "dev": 3318, "test": 3482 if reviews == 25000 else 3489}
    assert found["dropped"]["length filter"]["train"] == 17212 - 13427 and found["partial"] == {}
    assert [record["longest"] for record in found["splits"].values()] == [240] * 3


def test_drawn_imdb_reviews_are_the_listed_ones(listed_reviews: Corpus) -> None:
    """Where only the study's reviews are at hand, its training and dev reviews can be drawn again, not its test."""
    drawn = imdb(needed("imdb/aclImdb/train"), 0)
    ours, theirs = (
        Counter((e.split, e.label, " ".join(e.tokens)) for e in corpus.examples if e.split != "test")
        for corpus in (drawn, listed_reviews)
    )
    if sum(ours.values()) != sum(theirs.values()):
        pytest.skip("other training reviews are there")
    assert ours == theirs


def test_newsgroups_have_the_published_counts() -> None:
    """Jain & Wallace, Table 1, with 171 for its 151, which their files do not show; dev is part of their training."""
    found = summary(news.newsgroups(needed("20news-bydate/20news-bydate-train"), 0), "20news-sports")
    splits = found["splits"]
    assert per_class(splits, "train", "dev") == {"baseball": 716, "hockey": 710}
    assert per_class(splits, "test") == {"baseball": 171, "hockey": 183}
    assert splits["train"]["longest"] == 496
    assert sum(found["dropped"]["no words"].values()) == 60


def test_newsgroups_are_cleaned_as_scikit_learn_does() -> None:
    from sklearn.datasets import _twenty_newsgroups as theirs

    raw = needed("20news-bydate/20news-bydate-train")
    posts = [path for path in (raw / "20news-bydate").rglob("*") if path.is_file() and path.parent.name in news.SPORTS]
    assert len(posts) == 1993
    for path in posts:
        text = path.read_bytes().decode("latin-1")
        body = theirs.strip_newsgroup_header(text)
        assert news.without_headers(text) == body
        for part in (text, body):
            assert news.without_footer(part) == theirs.strip_newsgroup_footer(part)
            assert news.without_quotes(part) == theirs.strip_newsgroup_quoting(part)


@pytest.mark.parametrize(("number", "length"), [(1, 36.1979), (2, 94.1375)])
def test_babi_has_the_published_counts(number: Any, length: float) -> None:
    corpus = babi(needed("babi/tasks_1-20_v1-2/en-10k"), 0, number=number)
    found = summary(corpus, f"babi-{number}")
    assert [found["splits"][split]["instances"] for split in ("train", "dev", "test")] == [8500, 1500, 1000]
    assert found["partial"] == {}
    # With PAD, UNK, SOS and EOS the study counts 40 words.
    assert len(corpus.classes) == 36 and found["vocabulary_size"] == 36 + 5
    training = [example for example in corpus.examples if example.split != "test"]
    assert np.mean([len(example.tokens) for example in training]) == pytest.approx(length, abs=1e-4)
    for example in corpus.examples:
        assert example.evidence is not None
        marked = [word for word, mark in zip(example.tokens, example.evidence, strict=True) if mark]
        assert corpus.classes[example.label] in marked


def test_a_truncated_babi_3_is_reported() -> None:
    found = summary(babi(needed("babi/tasks_1-20_v1-2/en-10k"), 0, number=3), "babi-3")
    assert found["splits"]["test"]["instances"] == 1000
    assert set(found["partial"]) in ({"train", "dev"}, set())


def test_snli_has_the_published_counts() -> None:
    """Jain & Wallace, Table 1, test; the training file at hand may hold its first lines only."""
    found = summary(snli(needed("snli/snli_1.0/snli_1.0_train.jsonl"), 0), "snli")
    assert per_class(found["splits"], "test") == {"neutral": 3219, "contradiction": 3237, "entailment": 3368}
    assert [found["splits"][split]["instances"] for split in ("dev", "test")] == [9842, 9824]
    assert set(found["partial"]) <= {"train"}
    if not found["partial"]:
        assert per_class(found["splits"], "train") == {
            "neutral": 182764,
            "contradiction": 183187,
            "entailment": 183416,
        }


def test_cased_snli_has_the_pairs_of_the_cleaned_one_and_their_own_words() -> None:
    raw = needed("snli/snli_1.0/snli_1.0_train.jsonl")
    cased, cleaned = snli(raw, 0, tokens="cased"), snli(raw, 0)
    found = summary(cased, "snli-cased")
    assert [found["splits"][split]["instances"] for split in ("dev", "test")] == [9842, 9824]
    assert per_class(found["splits"], "test") == {"neutral": 3219, "contradiction": 3237, "entailment": 3368}
    assert set(found["partial"]) <= {"train"} and found["splits"]["test"]["unknown_share"] == 0
    for ours, theirs in zip(cased.examples, cleaned.examples, strict=True):
        assert (ours.split, ours.label, len(ours.tokens)) == (theirs.split, theirs.label, len(theirs.tokens))
        assert all(b in ("qqq", a.lower()) for a, b in zip(ours.tokens, theirs.tokens, strict=True))
    assert any(word[0].isupper() for word in cased.examples[0].tokens)


def test_quora_has_the_published_counts_or_reports_fewer() -> None:
    corpus = quora(needed("quora/quora_duplicate_questions.tsv"), 0)
    found = summary(corpus, "quora")
    texts = [found["splits"][split]["texts"] for split in ("train", "dev", "test")]
    if not found["partial"]:
        assert texts == [323432, 40429, 40429]
        return
    assert texts == [len(corpus.examples) * share // 10 for share in (8, 1, 1)] and len(found["partial"]) == 3
    kept = sum(record["instances"] for record in found["splits"].values())
    assert kept + sum(sum(counts.values()) for counts in found["dropped"].values()) == len(corpus.examples)
    # The 20,000 pairs at hand are balanced.
    if len(corpus.examples) == 20000:
        assert sum(example.label for example in corpus.examples) == 10000


def test_birds_have_the_published_counts_or_report_fewer() -> None:
    declaration = Registry().get("dataset", "birds")
    corpus = birds(needed("birds/train"), 0)
    found = prepare_images(corpus, Preparation(), "birds", declaration.counts, declaration.task).summary
    missing = {split for split, count in declaration.counts.items() if found["splits"][split]["instances"] < count}
    assert set(found["partial"]) == missing and {"common tern", "fish crow"} <= set(found["classes"])
    # Photographs: of many colours, and near pixels are alike.
    pixels = corpus.images[0].pixels.astype(float)
    assert found["side"] == len(pixels) and np.abs(np.diff(pixels, axis=1)).mean() < pixels.std() / 2
    smaller = birds(needed("birds/train"), 0, size=32)
    assert {image.pixels.shape for image in smaller.images} == {(32, 32, 3)}
