"""Reassigned labels, the bounds that follow from them, and texts that are changed by the new labels."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom, chi2_contingency

from plumbline.config.recipes import Preparation
from plumbline.data.corpus import Corpus, Example
from plumbline.data.manipulation import (
    ChangedText,
    InstanceWords,
    accuracy_p_value,
    attributed_share,
    manipulate,
    p_star,
    reassign,
    reassignment_matrix,
    shapley_bounds,
)
from plumbline.data.manipulations.texts import articles, half_articles, planted
from plumbline.data.prepare import Prepared, prepare
from plumbline.data.schemas import INSTANCES
from plumbline.data.vocabulary import UNK
from plumbline.errors import PlumblineError
from plumbline.registry import Registry
from plumbline.store import read_table, write_table

CLASSES = ["bad", "good", "odd"]


def random() -> np.random.Generator:
    return np.random.default_rng(0)


def corpus(sizes: int = 12, pair: list[str] | None = None, **changes: Any) -> Corpus:
    """Texts with different numbers; every third is of the same class."""
    examples = [
        Example(split, i % 3, ["The", f"{split}{i}", "is", "an", "end", "of", "the", "story"], pair, **changes)
        for split in ("train", "dev", "test")
        for i in range(sizes)
    ]
    return Corpus(examples, CLASSES, vocabulary=["a", "the", "alpha", "beta", "gamma"])


def artefact(prepared: Prepared, folder: Path) -> pa.Table:
    write_table(folder / "plain.parquet", INSTANCES, prepared.instances)
    return read_table(folder / "plain.parquet", INSTANCES)


def settings(name: str, **changes: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {"variant": f"{name}-0", "name": name, "kind": name, "options": {}, "r": 0.5}
    usual |= {"matrix": None, "classes": None, "draw": 0, "level": None, "visibility": None, "seed": 0}
    return {**usual, **changes}


def changed(
    prepared: Prepared, table: pa.Table, name: str, function: Callable[..., Any], **changes: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    facts = Registry().get("manipulation", name).facts
    return manipulate(table, prepared.words, prepared.summary, function, facts, settings(name, **changes))


def test_classes_are_kept_with_probability_r_else_uniformly_reassigned() -> None:
    np.testing.assert_allclose(reassignment_matrix(0.7, 2), [[0.7, 0.3], [0.3, 0.7]])
    np.testing.assert_allclose(reassignment_matrix(0.4, 4), np.full((4, 4), 0.2) + 0.2 * np.eye(4))


def test_labels_are_drawn_by_their_rows() -> None:
    matrix = np.array([[0.0, 1.0, 0.0], [0.1, 0.2, 0.7], [0.0, 0.0, 1.0]])
    labels = np.repeat([0, 1, 2], 20000)
    drawn = reassign(labels, matrix, random())
    counts = np.array([np.bincount(drawn[labels == label], minlength=3) for label in range(3)]) / 20000
    np.testing.assert_allclose(counts[[0, 2]], matrix[[0, 2]])
    np.testing.assert_allclose(counts[1], matrix[1], atol=4 * math.sqrt(0.25 / 20000))
    np.testing.assert_array_equal(reassign(labels, reassignment_matrix(1, 3), random()), labels)
    np.testing.assert_array_equal(reassign(labels % 2, reassignment_matrix(0, 2), random()), 1 - labels % 2)


def test_a_row_that_sums_to_a_little_less_than_one_gives_a_class() -> None:
    class Last:
        def random(self, size: int) -> np.ndarray:
            return np.full(size, np.nextafter(1.0, 0.0))

    assert reassign(np.array([0]), np.full((3, 3), 1 / 3 - 1e-12), Last()).tolist() == [2]  # type: ignore[arg-type]


def test_the_best_accuracy_without_the_manipulation() -> None:
    for r in (0.0, 0.2, 0.5, 0.8, 1.0):
        assert p_star(reassignment_matrix(r, 2), np.array([0.3, 0.7])) == pytest.approx(max(r, 1 - r))
    matrix = np.array([[0.9, 0.1], [0.6, 0.4]])
    assert p_star(matrix, np.array([0.25, 0.75])) == pytest.approx(0.25 * 0.9 + 0.75 * 0.6)


def test_the_best_accuracy_is_that_of_the_best_of_all_decision_rules() -> None:
    generator = random()
    matrix, shares = generator.dirichlet(np.ones(3), 3), generator.dirichlet(np.ones(3))
    rules = [(i, j, k) for i in range(3) for j in range(3) for k in range(3)]
    best = max(sum(shares[c] * matrix[c, rule[c]] for c in range(3)) for rule in rules)
    assert p_star(matrix, shares) == pytest.approx(best)


def test_the_p_value_of_an_accuracy() -> None:
    assert accuracy_p_value(0.75, 4, 0.5) == pytest.approx(5 / 16)
    assert accuracy_p_value(0.8, 4, 0.5) == pytest.approx(5 / 16)  # ⌊3.2⌋ = 3
    assert accuracy_p_value(0.0, 7, 0.3) == pytest.approx(1)
    assert accuracy_p_value(0.4, 10, 1.0) == 1
    # 0.29 * 100 is 28.999999999999996.
    assert accuracy_p_value(0.29, 100, 0.25) == pytest.approx(binom.sf(28, 100, 0.25))
    assert accuracy_p_value(0.95, 200, 0.6) == pytest.approx(binom.sf(189, 200, 0.6), rel=1e-9)
    assert accuracy_p_value(1.0, 1000, 0.5) == pytest.approx(2.0**-1000)
    assert accuracy_p_value(1.0, 5000, 0.5) == 0


def test_the_share_of_importance_that_a_region_has() -> None:
    assert attributed_share(np.array([1.0, -2.0, 0.5, 0.5]), np.array([False, True, False, True])) == pytest.approx(
        2.5 / 4
    )
    assert math.isnan(attributed_share(np.zeros(3), np.ones(3, dtype=bool)))
    assert attributed_share(np.float32([3, 1]), np.zeros(2, dtype=bool)) == 0


def test_bounds_of_shapley_values() -> None:
    assert shapley_bounds(0.7, 1.0) == (pytest.approx(0.8), pytest.approx(0.2))
    least, greatest = shapley_bounds(0.6, 0.95)
    assert (least, greatest) == (pytest.approx(0.8 / 0.9), pytest.approx(0.1 / 0.9))
    # Two features: the Shapley value of F_M is (a(M) - a(∅) + a(all) - a(O)) / 2, with a(O) at most r.
    p, r = 0.9, 0.75
    values = ((p - 0.5) + (p - r)) / 2, ((r - 0.5) + (p - p)) / 2
    np.testing.assert_allclose(shapley_bounds(r, p), np.array(values) / sum(values))


def test_articles_follow_the_label() -> None:
    text = InstanceWords(["The", "beer", ",", "an", "ale", ",", "has", "a", "head"], ["A", "pair"])
    for label, word in enumerate(("a", "the")):
        change = articles(text, label, random())
        assert change.first == [word, "beer", ",", word, "ale", ",", "has", word, "head"]
        assert change.first_groups == [1, 0, 0, 1, 0, 0, 0, 1, 0]
        assert (change.second, change.second_groups) == ([word, "pair"], [1, 0])
    assert text.first[0] == "The"
    assert articles(InstanceWords(["no", "others"]), 1, random()) == ChangedText(["no", "others"], [0, 0])
    with pytest.raises(PlumblineError, match="Articles distinguish two classes"):
        articles(text, 2, random())


@pytest.mark.parametrize("correlating", ["first half", "second half"])
def test_articles_of_one_half_follow_the_label_and_the_others_are_random(correlating: Any) -> None:
    words = ["the", "a", "an", "the", "a", "the", "x"]  # ⌊7/2⌋ = 3
    own, other = (slice(0, 3), slice(3, 6)) if correlating == "first half" else (slice(3, 6), slice(0, 3))
    coins = []
    for seed in range(400):
        change = half_articles(InstanceWords(words), seed % 2, np.random.default_rng(seed), correlating=correlating)
        assert change.first[own] == [("a", "the")[seed % 2]] * 3
        assert change.first_groups[own] == [1, 1, 1] and change.first_groups[other] == [2, 2, 2]
        assert len(set(change.first[other])) == 1 and change.first[6] == "x"
        coins.append((seed % 2, change.first[other][0] == "the"))
    heads = [sum(coin for label, coin in coins if label == own_label) for own_label in (0, 1)]
    # 200 throws each: 100 ± 4 standard deviations.
    assert all(72 <= count <= 128 for count in heads)


def test_halves_are_declared_as_options() -> None:
    first, second = (Registry().get("manipulation", f"articles-{order}") for order in ("cn", "nc"))
    assert (first.options["correlating"].default, second.options["correlating"].default) == (
        "first half",
        "second half",
    )
    assert first.groups == second.groups == ["correlating articles", "non-correlating articles"]


def test_a_word_is_planted_for_each_class() -> None:
    tokens, places = ["alpha", "beta", "gamma"], set()
    words = [str(i) for i in range(5)]
    for seed in range(100):
        change = planted(InstanceWords(words), seed % 3, np.random.default_rng(seed), tokens=tokens)
        place = change.first_groups.index(1)
        places.add(place)
        assert change.first[place] == tokens[seed % 3] and sum(change.first_groups) == 1
        assert change.first[:place] + change.first[place + 1 :] == words[:place] + words[place + 1 :]
    assert places == set(range(5))
    inserted = [
        planted(InstanceWords(words), 0, np.random.default_rng(seed), where="insert").first for seed in range(100)
    ]
    assert all([word for word in own if word != "alpha"] == words for own in inserted)
    assert {own.index("alpha") for own in inserted} == set(range(6))


def test_tokens_of_other_classes_in_the_text_become_that_of_the_class() -> None:
    change = planted(InstanceWords(["beta", "x", "beta"]), 0, random(), where="insert")
    assert sorted(change.first) == ["alpha", "alpha", "alpha", "x"]
    assert change.first_groups == [int(word == "alpha") for word in change.first]


@pytest.mark.parametrize(("texts", "groups"), [("first", (1, 0)), ("second", (0, 1)), ("both", (1, 1))])
def test_words_are_planted_in_the_chosen_texts(texts: Any, groups: tuple[int, int]) -> None:
    change = planted(InstanceWords(["x", "y"], ["u", "v", "w"]), 1, random(), texts=texts)
    assert change.second and change.second_groups
    assert (sum(change.first_groups), sum(change.second_groups)) == groups
    assert (change.first.count("beta"), change.second.count("beta")) == groups


def test_impossible_planting_is_refused() -> None:
    with pytest.raises(PlumblineError, match=r"`tokens` are alpha, beta, but there are more classes"):
        planted(InstanceWords(["x"]), 2, random())
    with pytest.raises(PlumblineError, match="`texts` is both, but these instances have no second text"):
        planted(InstanceWords(["x"]), 0, random(), texts="both")


def test_instances_are_changed_by_their_new_labels(tmp_path: Path) -> None:
    prepared = prepare(corpus(), Preparation(), "plain")
    table = artefact(prepared, tmp_path)
    columns, summary = changed(prepared, table, "articles", articles, classes=["odd", "bad"])
    write_table(tmp_path / "variant.parquet", INSTANCES, columns)
    rows = read_table(tmp_path / "variant.parquet", INSTANCES).to_pylist()
    plain = {(row["split"], row["instance"]): row for row in table.to_pylist()}
    assert len(rows) == 3 * 8 and {row["label"] for row in rows} == {0, 1}
    for row in rows:
        before = plain[row["split"], row["instance"]]
        assert ["odd", "bad"][row["original_label"]] == CLASSES[before["label"]]
        word = ("a", "the")[row["label"]]
        own = before["tokens"]
        assert row["tokens"] == [own[0], word, own[2], "is", word, "end", "of", word, "story", own[-1]]
        assert row["groups"] == [0, 1, 0, 0, 1, 0, 0, 1, 0, 0]
        known = [prepared.words.index(token) if token in prepared.words else UNK for token in row["tokens"]]
        assert row["ids"] == known
        assert row["maskable"] == before["maskable"] and row["groups_b"] is None
    record = summary["manipulation"]
    assert summary["classes"] == record["classes"] == ["odd", "bad"] and prepared.summary["classes"] == CLASSES
    assert (record["p_star"], record["matrix"], record["groups"]) == (0.5, [[0.5] * 2] * 2, ["correlating articles"])
    assert (record["reads"], record["variant"], record["r"]) == ("words", "articles-0", 0.5)
    assert record["shares"]["test"] == {"correlating articles": pytest.approx(3 / 8)}
    test = summary["splits"]["test"]
    labels = [row["label"] for row in rows if row["split"] == "test"]
    assert test["instances_per_class"] == {"odd": labels.count(0), "bad": labels.count(1)}
    assert (test["texts"], test["instances"], test["texts_per_class"]) == (8, 8, {"odd": 4, "bad": 4})
    # Of test texts the number alone is not in the vocabulary of the training texts.
    assert test["unknown_share"] == pytest.approx(1 / 8) and summary["splits"]["train"]["unknown_share"] == 0


def test_changes_do_not_depend_on_other_instances(tmp_path: Path) -> None:
    prepared = prepare(corpus(30), Preparation(), "plain")
    table = artefact(prepared, tmp_path)
    options = {"tokens": ["alpha", "beta", "gamma"], "where": "insert"}

    def planted_rows(some: pa.Table, seed: int = 0) -> dict[Any, Any]:
        columns, _ = changed(prepared, some, "planted", planted, options=options, seed=seed)
        keys = zip(columns["split"], columns["instance"], strict=True)
        return dict(zip(keys, zip(columns["label"], map(tuple, columns["ids"]), strict=True), strict=True))

    whole = planted_rows(table)
    order = np.random.default_rng(1).permutation(len(table))
    assert planted_rows(table.take(order)) == whole
    part = planted_rows(table.take(order[:40]))
    assert part and all(whole[key] == row for key, row in part.items())
    assert planted_rows(table, seed=1) != whole


def test_second_texts_have_groups_of_their_own(tmp_path: Path) -> None:
    prepared = prepare(corpus(6, ["was", "the", "end", "a", "good"]), Preparation(), "plain")
    table = artefact(prepared, tmp_path)
    columns, summary = changed(prepared, table, "articles-cn", half_articles, classes=["bad", "good"])
    assert columns["groups"][0] == [0, 1, 0, 0, 1, 0, 0, 2, 0, 0]
    assert columns["groups_b"][0] == [0, 0, 1, 0, 2, 0, 0]
    assert columns["ids_b"][0] == [prepared.words.index(word) for word in columns["tokens_b"][0]]
    assert summary["manipulation"]["shares"]["test"] == {
        "correlating articles": pytest.approx(3 / 13),
        "non-correlating articles": pytest.approx(2 / 13),
    }


def test_a_matrix_replaces_r(tmp_path: Path) -> None:
    prepared = prepare(corpus(), Preparation(), "plain")
    table = artefact(prepared, tmp_path)
    options = {"tokens": ["alpha", "beta", "gamma"]}
    matrix = [[0, 1, 0], [0, 0, 1], [0.6, 0, 0.4]]
    columns, summary = changed(prepared, table, "planted", planted, options=options, r=None, matrix=matrix)
    old, new = columns["original_label"], columns["label"]
    assert set(new[old == 0]) == {1} and set(new[old == 1]) == {2} and set(new[old == 2]) == {0, 2}
    assert summary["manipulation"]["p_star"] == pytest.approx((1 + 1 + 0.6) / 3)
    with pytest.raises(PlumblineError, match="has a `matrix` of 2 classes, but there are 3"):
        changed(prepared, table, "planted", planted, options=options, r=None, matrix=[[1, 0], [0, 1]])


def dependent(seeds: int, r: float, table: pa.Table, prepared: Prepared) -> int:
    """For how many seeds a chi-square test, at 5%, calls labels dependent on the original ones."""
    found = 0
    for seed in range(seeds):
        columns, _ = changed(prepared, table, "articles", articles, classes=["bad", "good"], r=r, seed=seed)
        counts = np.zeros((2, 2))
        np.add.at(counts, (columns["original_label"], columns["label"]), 1)
        found += chi2_contingency(counts, correction=False).pvalue < 0.05
    return found


def test_at_one_half_labels_are_independent_of_the_original_ones(tmp_path: Path) -> None:
    prepared = prepare(corpus(100), Preparation(), "plain")
    table = artefact(prepared, tmp_path)
    # Of 20 independent tests 5 or more come out below 5% with a probability of 0.003.
    assert dependent(20, 0.5, table, prepared) <= 4
    assert dependent(5, 0.75, table, prepared) == 5


def test_what_cannot_be_changed_is_refused_in_one_sentence(tmp_path: Path) -> None:
    prepared = prepare(corpus(), Preparation(), "plain")
    table = artefact(prepared, tmp_path)
    with pytest.raises(
        PlumblineError,
        match=(r"articles.classes` name 'god', which is not a class of the dataset; did you mean 'good'\?"),
    ):
        changed(prepared, table, "articles", articles, classes=["bad", "god"])
    with pytest.raises(PlumblineError, match=r"articles.classes` are bad, bad; name two or more, each once"):
        changed(prepared, table, "articles", articles, classes=["bad", "bad"])
    with pytest.raises(
        PlumblineError, match=r"'planted' puts the word '(delta|other|third)' into texts, but it is not in the"
    ):
        changed(prepared, table, "planted", planted, options={"tokens": ["delta", "other", "third"]})


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (ChangedText(["the"], []), "and a group for each word"),
        (ChangedText([], []), "and a group for each word"),
        (ChangedText(["the"], [1], ["the"], [1]), "must return at least one word for each existing text"),
        (ChangedText(["the"], [2]), "put a word into group 2, but it declares 1 `groups`"),
    ],
)
def test_faults_of_a_manipulation_are_named(tmp_path: Path, change: ChangedText, fault: str) -> None:
    prepared = prepare(corpus(), Preparation(), "plain")
    table = artefact(prepared, tmp_path)
    with pytest.raises(PlumblineError, match=fault):
        changed(prepared, table, "articles", lambda text, label, random: change)


def test_evidence_is_left_out_and_answers_are_refused(tmp_path: Path) -> None:
    prepared = prepare(corpus(6, evidence=[True] * 8), Preparation(), "plain")
    columns, _ = changed(prepared, artefact(prepared, tmp_path), "articles", articles, classes=["bad", "odd"])
    assert "evidence" not in columns
    prepared = prepare(corpus(6, ["what"], answers=[0, 1, 2]), Preparation(), "plain")
    with pytest.raises(PlumblineError, match="each instance of 'plain' has its own candidate"):
        changed(prepared, artefact(prepared, tmp_path), "articles", articles)
