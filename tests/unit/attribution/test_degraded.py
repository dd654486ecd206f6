"""Degraded measures: which scores are permuted, by hand, and what is left of a known truth."""

from dataclasses import replace
from math import floor
from pathlib import Path

import numpy as np
import pytest

from plumbline.attribution.degraded import degrade, degraded
from plumbline.attribution.importances import Importances
from plumbline.attribution.random import random
from plumbline.attribution.run import MeasureCall, attribute, load_calls
from plumbline.config.resolve import resolve
from plumbline.conformance import example_instances, example_model
from plumbline.dag.study import StudyDag
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.ground_truth.score import group_shares
from plumbline.registry import PACKAGE, Registry

INSTANCES, PAIRS = example_instances(14), example_instances(paired=True)
SHARES = (0.25, 0.5, 0.75, 1.0)


def evaluator(seed=0, paired=False):
    return Evaluator(example_model(Registry().get("model", "average-tanh"), seed, paired).requires_grad_(False), seed)


def rungs(instances, *shares, seed=0, paired=False):
    """The random measure and its degraded ones by share, as a job computes them."""
    base = MeasureCall(random, {})
    calls = {str(share): MeasureCall(degraded, {"of": "base", "share": share}, {"base": base}) for share in shares}
    columns, _ = attribute([evaluator(seed, paired)], instances, {**calls, "base": base})
    return columns


class Stream:
    """A generator that returns known permutations."""

    def __init__(self, *permutations):
        self.permutations = list(permutations)

    def permutation(self, given):
        order = np.array(self.permutations.pop(0), dtype=int)
        assert len(order) == (given if isinstance(given, int) else len(given))
        return order if isinstance(given, int) else np.array(given)[order]


def test_a_share_of_the_scores_is_permuted_by_hand():
    scores = np.array([10.0, 20.0, 30.0, 40.0, 50.0])
    # Half of five words are three: the words 4, 0 and 2 take the scores of 0, 2 and 4.
    found = degrade(scores, 0.5, Stream([4, 0, 2, 1, 3], [1, 2, 0]))
    assert found.tolist() == [30.0, 20.0, 50.0, 40.0, 10.0]
    assert scores.tolist() == [10.0, 20.0, 30.0, 40.0, 50.0]


@pytest.mark.parametrize(
    ("count", "share", "expected"), [(2, 0.25, 1), (5, 0.5, 3), (5, 0.1, 1), (4, 0.1, 0), (0, 1, 0)]
)
def test_the_number_of_words_is_rounded_half_up(count, share, expected):
    assert floor(share * count + 0.5) == expected
    stream = Stream(range(count), range(expected))
    assert len(degrade(np.zeros(count), share, stream)) == count and not stream.permutations


def test_nothing_permuted_is_the_measure_itself_and_everything_keeps_the_scores():
    columns = rungs(INSTANCES, 0.0, 1.0)
    for part in ("scores", "specials"):
        for base, none, whole in zip(*(columns[name][part] for name in ("base", "0.0", "1.0")), strict=True):
            assert np.array_equal(base, none) and np.array_equal(np.sort(base), np.sort(whole))
    changed = sum(map(np.array_equal, columns["base"]["scores"], columns["1.0"]["scores"]))
    assert changed < len(INSTANCES) / 2


def test_second_texts_and_special_tokens_are_permuted_too():
    columns = rungs(PAIRS, 1.0, paired=True)
    for part in ("scores", "pair", "specials"):
        pairs = list(zip(columns["base"][part], columns["1.0"][part], strict=True))
        assert all(np.array_equal(np.sort(base), np.sort(whole)) for base, whole in pairs)
        assert part == "specials" or not all(np.array_equal(base, whole) for base, whole in pairs)


def test_the_words_of_a_smaller_share_are_among_those_of_a_larger_one():
    scores = np.arange(40.0)
    moved = [set(np.flatnonzero(degrade(scores, share, np.random.default_rng(3)) != scores)) for share in SHARES]
    chosen = [set(np.random.default_rng(3).permutation(40)[: int(40 * share)]) for share in SHARES]
    assert all(words <= own for words, own in zip(moved, chosen, strict=True))
    # A random permutation of ten words leaves one of them in place on average.
    assert len(moved[0]) >= 5 and chosen[0] < chosen[1] < chosen[2] < chosen[3]


def test_scores_do_not_depend_on_order_other_rungs_or_other_texts():
    together = rungs(INSTANCES, *SHARES)
    shuffled = np.random.default_rng(1).permutation(len(INSTANCES))
    alone = rungs(INSTANCES.take(shuffled), 0.5)
    for i, scores in zip(shuffled, alone["0.5"]["scores"], strict=True):
        assert np.array_equal(scores, together["0.5"]["scores"][i])
    other = rungs(INSTANCES, 0.5, seed=1)["0.5"]["scores"]
    assert not all(map(np.array_equal, other, together["0.5"]["scores"]))


def test_the_base_is_computed_once_wherever_it_stands():
    calls = []

    def counted(evaluator, instances):
        calls.append(evaluator.seed)
        return random(evaluator, instances)

    base = MeasureCall(counted, {})
    rung = MeasureCall(degraded, {"of": "base", "share": 0.5}, {"base": base})
    attribute([evaluator()], INSTANCES, {"a": rung, "base": base, "b": rung})
    assert calls == [0]
    # For masking a rung is alone in its job.
    attribute([evaluator()], INSTANCES, {"a": rung})
    assert calls == [0, 0]


def test_the_explained_class_is_that_of_the_base():
    known = evaluator()
    target = np.arange(len(INSTANCES))
    known.importances_of = lambda name: replace(random(known, INSTANCES), target=target)
    assert degraded(known, INSTANCES, of="base", share=0.5).target is target


@pytest.mark.parametrize("truth", [1, 2])
def test_a_known_truth_fades_as_expected(truth):
    """Of n words m are the truth and share the importance; k of n are permuted. A word of the truth keeps its score
    unless it is among the k, and then has that of one of them: its own, or one of k - 1 others, of which a share of
    (m - 1) / (n - 1) is of the truth. So the expected share is 1 - k/n + (k/n) (1/k + (k - 1)/k (m - 1)/(n - 1))."""
    n, texts = 8, 4000
    groups = np.array([1] * truth + [0] * (n - truth))
    scores = groups / truth
    above = []
    for share in (0.0, *SHARES):
        k = floor(share * n + 0.5)
        expected = 1 - k / n + (k and (k / n) * (1 / k + (k - 1) / k * (truth - 1) / (n - 1)))
        found = [
            group_shares(degrade(scores, share, np.random.default_rng([7, i])), groups, 1).attributed[0]
            for i in range(texts)
        ]
        assert np.mean(found) == pytest.approx(expected, abs=4 * 0.5 / np.sqrt(texts))
        above.append((np.mean(found) - truth / n) / (1 - truth / n))
    assert above == sorted(above, reverse=True) and above[0] == 1
    # A permutation of all scores finds the truth by chance.
    assert above[-1] == pytest.approx(0, abs=0.05)


def test_a_measure_without_scores_of_pairs_has_none():
    known = evaluator()
    known.importances_of = lambda name: Importances(random(known, INSTANCES).scores)
    found = degraded(known, INSTANCES, of="base", share=1.0)
    assert found.pair is None and found.specials is None and found.target is None


def test_a_rung_is_the_same_in_the_job_of_its_base_and_alone():
    """From the config to the scores: the job of plain texts computes base and rung, that of masking the rung alone."""
    ladder = {"of": "leave-one-out", "share": 0.5}
    measures = {"leave-one-out": {}, "random": {}, "degraded": ladder}
    study = {"datasets": ["mock-2"], "models": ["average-tanh"], "measures": measures}
    study["roar"] = {"relative": {"levels": [50]}}
    graph = StudyDag(resolve(study), [Path()], PACKAGE.parent / "scripts")
    cell, rung = graph.runs.cells[0], "leave-one-out.degraded.0.5"
    jobs = {"plain": "leave-one-out", "unmasked": rung}
    calls = {name: load_calls(graph.params.measures(replace(cell, variant=name), job)) for name, job in jobs.items()}
    assert list(calls["plain"]) == ["leave-one-out", rung] and list(calls["unmasked"]) == [rung]
    together, alone = (attribute([evaluator()], INSTANCES, measures)[0] for measures in calls.values())
    assert all(map(np.array_equal, together[rung]["scores"], alone[rung]["scores"]))
    assert not all(map(np.array_equal, together[rung]["scores"], together["leave-one-out"]["scores"]))
