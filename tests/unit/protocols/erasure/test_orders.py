"""Areas of erasing word by word compared with all permutations of short texts, one text at a time."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from plumbline.conformance import example_instances
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.erasure import orders
from plumbline.protocols.erasure.erased import whole_texts
from plumbline.protocols.erasure.orders import EXACT, ErasedOutputs, curve_sets, total_bounds
from plumbline.protocols.erasure.score import Erasure
from tests.unit.protocols.erasure.cells import Cell, drawn, kept, make_evaluator, probabilities

CASES = [("bilstm-tanh", False), ("cnn-dot", False), ("transformer-tanh", False), ("bilstm-tanh", True)]


def output_by_set(evaluator: Evaluator, text: Instances) -> dict[frozenset[int], float]:
    """The output of a text without each set of its words that leaves one."""
    words = np.arange(int(text.maskable[0].sum()))
    target = probabilities(evaluator, text).argmax()
    chosen = [[w for w in words if mask >> w & 1] for mask in range(2 ** len(words) - 1)]
    rest = [np.setdiff1d(words, erased) for erased in chosen]
    return {
        frozenset(erased): probabilities(evaluator, kept(text, left))[target]
        for erased, left in zip(chosen, rest, strict=True)
    }


def aopc_of(outputs: dict[frozenset[int], float], order: tuple[int, ...]) -> float:
    """Σ p(x) - p(x without its first k words), for all steps but the last, which all orders share."""
    return sum(outputs[frozenset()] - outputs[frozenset(order[:k])] for k in range(1, len(order)))


@pytest.mark.parametrize(("name", "paired"), CASES)
def test_normalised_aopc_is_that_of_all_permutations(name, paired):
    evaluator, instances = make_evaluator(name, paired, sharp=5.0), example_instances(paired=paired)
    short = np.flatnonzero([free.sum() <= EXACT for free in instances.maskable])
    instances = instances.take(short)
    assert sorted({int(free.sum()) for free in instances.maskable}) == list(range(2, EXACT + 1))
    scores = drawn(instances)
    best, worst = [], []
    expected = []
    for i in range(len(instances)):
        outputs = output_by_set(evaluator, instances.take([i]))
        areas = {order: aopc_of(outputs, order) for order in permutations(range(len(scores[i])))}
        low, high = min(areas.values()), max(areas.values())
        own = areas[tuple(np.argsort(-scores[i], kind="stable").tolist())]
        # One of the pairs has a single admissible answer, whose probability is 1 whatever is erased.
        expected.append((own - low) / (high - low) if high > low else np.nan)
        for found, end in ((best, high), (worst, low)):
            order = next(order for order, area in areas.items() if area == end)
            found.append(-np.argsort(order).astype(float))
    measures = {"drawn": scores, "best": best, "worst": worst}
    columns = Erasure(ratios=[50], draws=0).score(Cell(instances, [evaluator], measures))
    normalised = columns["normalised_aopc"].reshape(3, -1)
    np.testing.assert_allclose(normalised[0], expected, atol=1e-4)
    defined = ~np.isnan(expected)
    assert defined.sum() >= len(instances) - paired
    np.testing.assert_allclose(normalised[1, defined], 1, atol=1e-4)
    np.testing.assert_allclose(normalised[2, defined], 0, atol=1e-4)


def test_the_area_between_curves_is_that_of_one_text_at_a_time():
    evaluator, instances = make_evaluator(), example_instances()
    scores = drawn(instances)
    for longest in (24, 5):
        columns = Erasure(ratios=[50], draws=0, longest=longest).score(Cell(instances, [evaluator], {"drawn": scores}))
        for i in range(len(instances)):
            text, n = instances.take([i]), len(scores[i])
            target = probabilities(evaluator, text).argmax()
            order, steps = np.argsort(-scores[i], kind="stable"), min(n, longest)
            counts = [int(np.ceil(step * n / steps)) for step in range(1, steps)]
            gaps = [
                probabilities(evaluator, kept(text, order[: n - k]))[target]
                - probabilities(evaluator, kept(text, order[k:]))[target]
                for k in counts
            ]
            assert columns["morf_lerf"][i] == pytest.approx(sum(gaps) / steps, abs=1e-5)
        known = ~np.isnan(columns["normalised_aopc"])
        assert known.tolist() == [len(row) <= longest for row in scores]


def test_steps_are_evenly_spaced_and_never_the_whole_text():
    sets = curve_sets(np.array([[2, 0, 1, 3, 4, 5, 6, 7, 8, 9]]), 4)
    assert sets.shape == (1, 2, 3, 10)
    assert sets.sum(-1).tolist() == [[[3, 5, 8], [3, 5, 8]]]
    most, least = sets[0]
    assert np.flatnonzero(most[0]).tolist() == [0, 1, 2] and np.flatnonzero(least[0]).tolist() == [7, 8, 9]
    assert all((a <= b).all() for curve in (most, least) for a, b in pairwise(curve))


def test_a_beam_is_between_the_measures_and_the_bounds(monkeypatch):
    """Texts of 8 words by beam search: no wider than the exact bounds, and equal with a beam that drops nothing."""
    evaluator, instances = make_evaluator(), example_instances(60)
    instances = instances.take([i for i, free in enumerate(instances.maskable) if free.sum() == EXACT])
    texts = range(len(instances))

    def bounds(beam: int) -> np.ndarray:
        return np.array(total_bounds(ErasedOutputs(whole_texts(evaluator, instances, "delete", 4)), texts, beam))

    exact = bounds(1)
    monkeypatch.setattr(orders, "EXACT", 2)
    widths = np.array([np.ptp(bounds(beam), axis=1) for beam in (1, 5, 70)])
    assert (np.diff(widths, axis=0) >= -1e-9).all() and (widths[0] < widths[2] - 1e-6).any()
    np.testing.assert_allclose(bounds(70), exact, atol=1e-9)
    # However narrow the beam, the orders of the measures are within the bounds.
    measures = {str(seed): drawn(instances, seed) for seed in range(20)}
    columns = Erasure(ratios=[50], draws=0, beam=1).score(Cell(instances, [evaluator], measures))
    assert (columns["normalised_aopc"] >= 0).all() and (columns["normalised_aopc"] <= 1).all()


def test_rising_functions_of_scores_change_nothing():
    evaluator, instances = make_evaluator(), example_instances()
    scores = drawn(instances)
    measures = {"as they are": scores, "cubed": [row.astype(float) ** 3 for row in scores]}
    columns = Erasure(ratios=[50]).score(Cell(instances, [evaluator], measures))
    for name in ("normalised_aopc", "morf_lerf", "soft_fall_without", "soft_fall_alone"):
        one, other = columns[name].reshape(2, -1)
        np.testing.assert_allclose(one, other, atol=1e-7)


def test_every_set_runs_once_and_chunks_change_nothing(monkeypatch):
    instances = example_instances()
    measures = {"a": drawn(instances), "b": drawn(instances, 1)}
    run: list[tuple[bytes, ...]] = []

    def score() -> dict[str, np.ndarray]:
        evaluator = make_evaluator()
        evaluate = evaluator.probabilities
        monkeypatch.setattr(
            evaluator, "probabilities", lambda texts: run.extend(row.tobytes() for row in texts.ids) or evaluate(texts)
        )
        return orders.order_metrics(whole_texts(evaluator, instances, "delete", 4), measures, 24, 5)

    whole = score()
    longest = [row for row in run if len(row) > 4 * 12]
    assert len(longest) > 100 and len(set(longest)) == len(longest)
    monkeypatch.setattr(orders, "TOKENS", 1)
    for measure, values in score().items():
        np.testing.assert_allclose(values, whole[measure], atol=1e-5)
