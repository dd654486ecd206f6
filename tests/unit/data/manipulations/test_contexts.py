"""Labels that follow from several words: each rule is written here from the documentation, and proves the truth."""

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plumbline.config.recipes import Preparation
from plumbline.config.resolve import resolve
from plumbline.conformance import check
from plumbline.data.manipulation import ChangedText, InstanceWords, manipulate, p_star, reassignment_matrix
from plumbline.data.manipulations.contexts import context, ordered, redundant, unless
from plumbline.data.prepare import prepare
from plumbline.errors import PlumblineError
from plumbline.protocols.ground_truth.metrics import above_region
from plumbline.protocols.ground_truth.score import group_shares
from plumbline.registry import Registry
from tests.unit.data.manipulations.test_manipulation import artefact, corpus, settings

ORDINARY = ["a", "film", "of", "great", "beauty", "and", "dull", "talk"]
# The inserted words and, for three classes, those of the rules below.
TOKENS = {
    "context": ["sigma", "alpha", "beta", "gamma"],
    "ordered": ["alpha", "beta"],
    "unless": ["sigma", "alpha", "beta", "gamma", "delta", "epsilon", "zeta"],
    "redundant": ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"],
}
FUNCTIONS: dict[str, Callable[..., ChangedText]] = {
    "context": context,
    "ordered": ordered,
    "unless": unless,
    "redundant": redundant,
}


def context_rule(words: Sequence[str]) -> int | None:
    """The class of the token right after the marker."""
    after = [second for first, second in zip(words, [*words[1:], ""], strict=True) if first == "sigma"]
    return ["alpha", "beta", "gamma"].index(after[0]) if after and after[0] in ("alpha", "beta", "gamma") else None


def ordered_rule(words: Sequence[str]) -> int | None:
    """1 if the first word of the pair stands before the second."""
    both = "alpha" in words and "beta" in words
    return int(words.index("alpha") < words.index("beta")) if both else None


def unless_rule(words: Sequence[str]) -> int | None:
    """The class of the primary word or, with the blocker, of the secondary one."""
    counting = ["delta", "epsilon", "zeta"] if "sigma" in words else ["alpha", "beta", "gamma"]
    found = {counting.index(word) for word in words if word in counting}
    return found.pop() if len(found) == 1 else None


def redundant_rule(words: Sequence[str]) -> int | None:
    """The class of either word."""
    found = {TOKENS["redundant"].index(word) % 3 for word in words if word in TOKENS["redundant"]}
    return found.pop() if len(found) == 1 else None


RULES = {"context": context_rule, "ordered": ordered_rule, "unless": unless_rule, "redundant": redundant_rule}
NAMES = list(RULES)


def made(name: str, count: int = 400) -> Iterator[tuple[ChangedText, int, np.random.Generator]]:
    """Changed texts of one to twelve words, some of them tokens, with their labels."""
    for seed in range(count):
        random = np.random.default_rng([seed, NAMES.index(name)])
        label = int(random.integers(2 if name == "ordered" else 3))
        words = random.choice([*ORDINARY, *TOKENS[name]], random.integers(1, 13)).tolist()
        yield FUNCTIONS[name](InstanceWords(words), label, random, tokens=TOKENS[name]), label, random


def words_of(change: ChangedText, group: int) -> list[str]:
    return [word for word, own in zip(change.first, change.first_groups, strict=True) if own == group]


@pytest.mark.parametrize("name", NAMES)
def test_the_label_follows_from_the_rule(name: str) -> None:
    labels = []
    for change, label, _ in made(name):
        assert RULES[name](change.first) == label
        assert len(change.first) == len(change.first_groups)
        # No token is left that the rule does not place.
        assert {word for word in change.first if word in TOKENS[name]} == {*words_of(change, 1), *words_of(change, 2)}
        labels.append(label)
    assert set(labels) == ({0, 1} if name == "ordered" else {0, 1, 2})


@pytest.mark.parametrize("name", NAMES)
def test_inert_words_never_matter(name: str) -> None:
    """Deleted or replaced: ordinary words by others, decoys by those of other classes."""
    families = [TOKENS[name][1:4], TOKENS[name][4:]] if name == "unless" else [TOKENS[name][1:]]
    for change, label, random in made(name):
        for _ in range(10):
            kept = []
            for word, group in zip(change.first, change.first_groups, strict=True):
                fate = "keep" if group == 1 else random.choice(["keep", "delete", "replace"])
                others = next((family for family in families if group and word in family), ORDINARY)
                kept += [] if fate == "delete" else [random.choice(others) if fate == "replace" else word]
            assert RULES[name](kept) == label


@pytest.mark.parametrize("name", NAMES)
def test_the_truth_suffices_and_nothing_less(name: str) -> None:
    """All of it or, where any suffices, each word; with another word in place of one, the label is another or none."""
    lost: dict[str, list[bool]] = {}
    for change, label, _ in made(name):
        truth = words_of(change, 1)
        suffices = Registry().get("manipulation", name).suffices
        assert all(
            RULES[name](part) == label for part in ([truth] if suffices == "all" else [[word] for word in truth])
        )
        for position in np.flatnonzero(np.equal(change.first_groups, 1)):
            rest = [*change.first[:position], "film", *change.first[position + 1 :]]
            kind = "blocker" if change.first[position] == "sigma" else "token"
            lost.setdefault(kind, []).append(RULES[name](rest) != label)
        rest = [word for word, group in zip(change.first, change.first_groups, strict=True) if group != 1]
        if name != "unless":
            assert RULES[name](rest) is None
    if name == "redundant":
        assert not any(lost["token"])
    else:
        assert all(lost["token"])
        # Without the blocker the primary word counts, which is of the same class in a third of the texts.
        share = 2 / 3 if name == "unless" else 1
        assert np.mean(lost.get("blocker", [1])) == pytest.approx(share, abs=0.12)


def test_other_truth_words_give_other_labels() -> None:
    for change, _, _ in made("context"):
        i = change.first.index("sigma")
        for other in (0, 1, 2):
            words = [*change.first[: i + 1], TOKENS["context"][1 + other], *change.first[i + 2 :]]
            assert context_rule(words) == other
    for change, label, _ in made("ordered"):
        swap = {"alpha": "beta", "beta": "alpha"}
        assert ordered_rule([swap.get(word, word) for word in change.first]) == 1 - label


def test_decoys_are_of_every_class_whatever_the_label() -> None:
    for name in ("context", "unless"):
        counts = np.zeros((3, 3))
        for change, label, _ in made(name, 900):
            (decoy,) = words_of(change, 2)
            counts[label, (TOKENS[name].index(decoy) - 1) % 3] += 1
        # 900 / 9, four standard deviations.
        assert np.all(np.abs(counts - 100) < 40)
    blocked = ["sigma" in change.first for change, _, _ in made("unless", 400)]
    assert np.mean(blocked) == pytest.approx(0.5, abs=0.1)


def test_words_are_inserted_everywhere_and_the_others_stay_in_order() -> None:
    words = [str(i) for i in range(4)]
    for name in NAMES:
        places = set()
        for seed in range(300):
            change = FUNCTIONS[name](InstanceWords(words, ["u", "alpha"]), 0, np.random.default_rng(seed))
            assert [word for word in change.first if word in words] == words
            assert (change.second, change.second_groups) == (["u", "alpha"], [0, 0])
            places |= set(np.flatnonzero(change.first_groups).tolist())
        assert places == set(range(4 + {"ordered": 2, "redundant": 2}.get(name, 3)))


def test_a_text_of_tokens_alone_becomes_the_truth() -> None:
    change = ordered(InstanceWords(["beta", "alpha"]), 1, np.random.default_rng(0))
    assert (change.first, change.first_groups) == (["alpha", "beta"], [1, 1])


@pytest.mark.parametrize(
    ("function", "label", "tokens", "fault"),
    [
        (context, 2, ["m", "a", "b"], "`tokens` are m, a, b, for 2 classes, but the dataset has more"),
        (context, 0, ["m", "a", "a"], "name 3 different words for two classes, and 1 more for each further class"),
        (unless, 0, ["m", "a", "b", "c"], "name 5 different words for two classes, and 2 more for each further"),
        (redundant, 0, ["a", "b"], "name 4 different words for two classes"),
        (ordered, 2, ["a", "b"], "The order of two words distinguishes two classes, but the dataset has more"),
        (ordered, 0, ["a", "b", "c"], "name two different words, the first and the second"),
    ],
)
def test_impossible_tokens_are_refused(function: Any, label: int, tokens: list[str], fault: str) -> None:
    with pytest.raises(PlumblineError, match=fault):
        function(InstanceWords(["x"]), label, np.random.default_rng(0), tokens=tokens)


@pytest.mark.parametrize("name", NAMES)
def test_the_record_has_how_the_truth_suffices_and_the_accuracy_without_it(name: str, tmp_path: Path) -> None:
    declaration = Registry().get("manipulation", name)
    tokens = declaration.options["tokens"].default
    prepared = prepare(corpus(12), Preparation(), "plain")
    known = {**prepared.summary, "classes": ["bad", "good", "odd"]}
    words = [*prepared.words, *(word for word in tokens if word not in prepared.words)]
    chosen = settings(name, classes=["bad", "odd"], options={"tokens": tokens})
    columns, summary = manipulate(
        artefact(prepared, tmp_path), words, known, FUNCTIONS[name], declaration.facts, chosen
    )
    record = summary["manipulation"]
    assert record["suffices"] == ("any" if name == "redundant" else "all")
    assert record["p_star"] == (0.75 if name in ("context", "unless") else 0.5)
    rule = {row: label for row, label in enumerate(columns["label"].tolist())}
    if name == "ordered":
        assert all(ordered_rule(columns["tokens"][row]) == label for row, label in rule.items())


def test_the_accuracy_of_a_model_that_cannot_tell_the_decoy() -> None:
    """The best of all rules that see the original class, a primary and a secondary token, but no blocker."""
    for classes, r in product((2, 3), (0.5, 0.8, 1.0)):
        matrix, shares = reassignment_matrix(r, classes), np.full(classes, 1 / classes)
        best = 0.0
        for original, first, second in product(range(classes), repeat=3):
            likely = np.zeros(classes)
            likely[first] += matrix[original, first] / (2 * classes)
            likely[second] += matrix[original, second] / (2 * classes)
            best += shares[original] * likely.max()
        assert p_star(matrix, shares, decoys=True) == pytest.approx(best)
    assert p_star(reassignment_matrix(0.5, 2), np.array([0.5, 0.5]), decoys=True) == 0.75


@pytest.mark.parametrize("name", NAMES)
def test_an_oracle_scores_one_and_random_its_chance(name: str) -> None:
    """Random is the mean over all orders of the words: exactly chance."""
    suffices, groups = (getattr(Registry().get("manipulation", name), fact) for fact in ("suffices", "groups"))
    for change, _, _ in list(made(name, 6)):
        words, own = np.array(change.first)[:7], np.array(change.first_groups)[:7]
        truth, n = own == 1, len(words)
        if not truth.any() or truth.all():
            continue
        oracles = [truth.astype(float)]
        oracles += [np.eye(n)[i] for i in np.flatnonzero(truth)] if suffices == "any" else []
        for scores in oracles:
            shares = group_shares(scores, own, len(groups), suffices)
            assert (above_region(shares.attributed[0], shares.region[0]), shares.found, shares.auc) == (1, 1, 1)
        orders = [group_shares(np.array(order), own, len(groups), suffices) for order in permutations(range(1, n + 1))]
        region = truth.mean()
        assert np.mean([above_region(one.attributed[0], region) for one in orders]) == pytest.approx(0, abs=1e-12)
        assert np.mean([one.found for one in orders]) == pytest.approx(region)
        assert np.mean([one.auc for one in orders]) == pytest.approx(0.5)
        same = group_shares(np.ones(n), own, len(groups), suffices)
        assert (same.found, same.auc) == (pytest.approx(region), pytest.approx(0.5))


@pytest.mark.parametrize("name", NAMES)
def test_vocabularies_hold_the_tokens(name: str) -> None:
    study = {"datasets": {"reviews": {}}, "models": {"average-tanh": {}}, "measures": {"random": {}}}
    study |= {"manipulations": {name: {}}, "protocols": {"ground_truth": {}}, "name": "test", "seeds": ["0"]}
    assert resolve(study).inserted_words("reviews") == sorted(
        Registry().get("manipulation", name).options["tokens"].default
    )


@pytest.mark.parametrize("name", NAMES)
def test_it_conforms(name: str) -> None:
    assert check("manipulation", name, Registry()) == []
