"""The publishers' own files, in the folder that the variable PLUMBLINE_DATA names."""

import os
from pathlib import Path

import numpy as np
import pytest

from plumbline.config.recipes import Embedding, Preparation
from plumbline.data.corpus import Corpus
from plumbline.data.embeddings import embed
from plumbline.data.mock import opinion_words
from plumbline.data.movie import movie
from plumbline.data.prepare import prepare
from plumbline.data.sst import sst

pytestmark = pytest.mark.realdata


def needed(path: str) -> Path:
    """The raw folder; skip where it, or the wanted file in it, is not at hand."""
    folder = os.environ.get("PLUMBLINE_DATA")
    if not folder:
        pytest.skip("PLUMBLINE_DATA is not set")
    if not (Path(folder) / path).exists():
        pytest.skip(f"{path} is not in the folder that PLUMBLINE_DATA names")
    return Path(folder)


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
