"""Integrated gradients use enough points, and report their completeness error."""

import warnings

import numpy as np
import pytest
import torch

from plumbline.attribution.completeness import MAX_REFINEMENT, Residuals, gauss_legendre, refine
from plumbline.attribution.integrated_gradient import integrated_gradient
from plumbline.attribution.path import integrated_gradient_pad
from plumbline.conformance import example_instances, example_model
from plumbline.models.evaluator import Evaluator
from plumbline.registry import Registry

INSTANCES = example_instances()


def make_evaluator(sharp: float, name: str = "bilstm-tanh", budget: int = 10_000) -> Evaluator:
    """A model whose output jumps on the path, so that few points miss it."""
    model = example_model(Registry().get("model", name))
    with torch.no_grad():
        for parameter in model.head.parameters():
            parameter *= sharp
    return Evaluator(model.requires_grad_(False), 3, budget)


def test_more_points_where_they_are_needed():
    """∫ f' of a step at 0.5: a smooth row keeps its first points, one that jumps gets more."""
    steep = torch.tensor([1.0, 30.0], dtype=torch.float64)
    calls = []

    def scores(rows: torch.Tensor, points: np.ndarray, weights: np.ndarray) -> torch.Tensor:
        calls.append((rows.tolist(), len(points)))
        at = torch.from_numpy(points)
        derivative = steep[rows, None] * torch.sigmoid(steep[rows, None] * (at - 0.503)).mul(
            1 - torch.sigmoid(steep[rows, None] * (at - 0.503))
        )
        return (derivative * torch.from_numpy(weights)).sum(1, keepdim=True)

    every = torch.arange(2)
    change = torch.sigmoid(steep * 0.497) - torch.sigmoid(-steep * 0.503)
    first = scores(every, *gauss_legendre(4))
    assert abs(first[1, 0] - change[1]) > 0.01
    found, errors = refine(first.clone(), change, scores, 4, 0.01)
    assert abs(errors[1]) <= 0.01 and found[0] == first[0]
    assert calls[0] == ([0, 1], 4) and {tuple(rows) for rows, _ in calls[1:]} == {(1,)}
    assert [points for _, points in calls[1:]] == [4 * 2**i for i in range(1, len(calls))]
    calls.clear()
    found, errors = refine(first.clone(), change, scores, 4, 0)
    assert not calls and torch.equal(found, first)
    refine(first.clone(), change + 1, scores, 4, 0.01)
    assert calls[-1][1] == MAX_REFINEMENT * 4


@pytest.mark.parametrize("function", ["probability", "logit"])
@pytest.mark.parametrize("measure", [integrated_gradient, integrated_gradient_pad])
def test_the_residual_is_the_sum_less_the_change(measure, function):
    evaluator = make_evaluator(100.0)
    kwargs = {"function": function, "sign": "signed"}
    fixed, adaptive, exact = (
        measure(evaluator, INSTANCES, steps=steps, tolerance=tolerance, **kwargs)
        for steps, tolerance in ((1, 0), (1, 0.001), (200, 0))
    )
    assert np.abs(fixed.residual).max() > 0.005
    assert np.abs(adaptive.residual).max() < np.abs(fixed.residual).max() / 4
    assert np.abs(exact.residual).max() < 0.01
    if fixed.specials:
        # The residual is the error of the sum over words and special tokens.
        sums = [
            np.array([one.scores[i].sum() + one.specials[i].sum() for i in range(len(INSTANCES))])
            for one in (fixed, exact)
        ]
        np.testing.assert_allclose(sums[0] - sums[1], fixed.residual - exact.residual, atol=1e-4)


def test_texts_that_stay_incomplete_are_reported():
    evaluator = make_evaluator(30.0)
    with pytest.warns(
        UserWarning,
        match=(r"of 12 texts do not sum to the change of the output: they differ from it by more than 1e-09"),
    ):
        integrated_gradient_pad(evaluator, INSTANCES, steps=1, tolerance=1e-9)
    assert len(evaluator.budget.events) == 1 and "with 16 points" in evaluator.budget.events[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        integrated_gradient_pad(evaluator, INSTANCES, steps=1, tolerance=0)
        integrated_gradient_pad(make_evaluator(1.0), INSTANCES)


def test_scores_that_are_not_finite_are_reported():
    evaluator = make_evaluator(1.0)
    residuals = Residuals(3)
    residuals.add(np.arange(3), torch.tensor([0.0, torch.nan, torch.nan]), torch.tensor([1.0, 1.0, torch.nan]))
    with pytest.warns(UserWarning, match="scores of 1 of 3 texts are not finite, although the output is"):
        residuals.warn(evaluator, "Integrated gradients", 50, 0.01)
    assert len(evaluator.budget.events) == 1


def test_the_published_form_has_no_residual():
    assert integrated_gradient(make_evaluator(1.0), INSTANCES, weighting="published").residual is None


@pytest.mark.parametrize("measure", [integrated_gradient, integrated_gradient_pad])
def test_a_class_that_cannot_be_the_answer_has_no_residual(measure):
    pairs = example_instances(paired=True)
    model = example_model(Registry().get("model", "bilstm-tanh"), paired=True)
    found = measure(Evaluator(model.requires_grad_(False), 0), pairs, target=1, function="logit", steps=3, tolerance=0)
    admissible = np.array([1 in answers for answers in pairs.answers])
    assert 0 < admissible.sum() < len(pairs)
    np.testing.assert_array_equal(found.residual != 0, admissible)


def test_batches_do_not_matter():
    small, large = (
        integrated_gradient_pad(make_evaluator(30.0, budget=budget), INSTANCES, steps=3) for budget in (20, 10_000)
    )
    for one, other in zip(small.scores, large.scores, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
