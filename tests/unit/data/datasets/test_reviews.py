"""Generated reviews: lengths, articles, and sentiment words that decide the label."""

from collections import Counter
from pathlib import Path

from plumbline.config.recipes import Preparation
from plumbline.data.corpus import Corpus
from plumbline.data.datasets.reviews import CLOSINGS, JUDGEMENTS, LONGEST_SENTENCE, MIDDLES, OPENINGS, reviews
from plumbline.data.manipulations.texts import ARTICLES
from plumbline.data.prepare import prepare
from plumbline.registry import Registry


def texts(corpus: Corpus, split: str) -> list[tuple[int, list[str]]]:
    return [(e.label, e.tokens) for e in corpus.examples if e.split == split]


def test_counts_and_classes(tmp_path: Path) -> None:
    corpus = reviews(tmp_path, 0, train=40, dev=20, test=10)
    counts = Counter((e.split, e.label) for e in corpus.examples)
    assert [counts[split, label] for split in ("train", "dev", "test") for label in (0, 1)] == [20, 20, 10, 10, 5, 5]
    assert corpus.classes == ["bad", "good"]


def test_lengths(tmp_path: Path) -> None:
    assert max(len(sentence.split()) for sentence in (*OPENINGS, *MIDDLES, *CLOSINGS)) == LONGEST_SENTENCE
    lengths = [len(e.tokens) for e in reviews(tmp_path, 1).examples]
    assert (min(lengths), max(lengths)) == (14, 40)


def test_most_sentiment_words_are_of_the_class(tmp_path: Path) -> None:
    lists = [set(words) for words in JUDGEMENTS]
    assert not lists[0] & lists[1]
    contrary = 0
    for example in reviews(tmp_path, 0).examples:
        own, other = (
            sum(word in lists[label] for word in example.tokens) for label in (example.label, 1 - example.label)
        )
        assert own > other
        contrary += other > 0
    assert contrary > 100


def test_articles_are_frequent_and_in_both_halves(tmp_path: Path) -> None:
    examples = reviews(tmp_path, 0).examples
    there = [[word in ARTICLES for word in example.tokens] for example in examples]
    assert 0.08 < sum(map(sum, there)) / sum(map(len, there)) < 0.12
    assert all(any(own[: len(own) // 2]) and any(own[len(own) // 2 :]) for own in there)
    words = Counter(word for example in examples for word in example.tokens)
    assert min(words[article] for article in ARTICLES) > 500


def test_an_is_used_before_vowels_only(tmp_path: Path) -> None:
    for example in reviews(tmp_path, 0).examples:
        for word, after in zip(example.tokens, example.tokens[1:], strict=False):
            assert word not in ("a", "an") or (word == "an") == (after[0] in "aeiou")


def test_each_split_has_its_own_generator(tmp_path: Path) -> None:
    small, large = reviews(tmp_path, 3, train=10, test=50), reviews(tmp_path, 3, train=99, test=50)
    assert texts(small, "test") == texts(large, "test") and texts(small, "dev") == texts(large, "dev")
    assert texts(reviews(tmp_path, 4, test=50), "test") != texts(small, "test")
    assert texts(small, "dev")[:10] != texts(small, "train")[:10]


def test_the_vocabulary_holds_every_word(tmp_path: Path) -> None:
    corpus = reviews(tmp_path, 0)
    recipe = Preparation(**Registry().get("dataset", "reviews").preparation)
    assert (recipe.embedding.dimensions, recipe.embedding.trainable) == (50, False)
    prepared = prepare(corpus, recipe, "reviews")
    assert corpus.vocabulary and set(prepared.words[5:]) == set(corpus.vocabulary)
    assert set(corpus.vocabulary) == {word for example in corpus.examples for word in example.tokens}
