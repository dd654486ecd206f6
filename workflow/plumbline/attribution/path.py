"""Measures of the gradients on the straight way from a text that says nothing to the text itself."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from plumbline.attribution.attribution_batch import AttributionBatch, at_least_one, copies, explain, outputs_with
from plumbline.attribution.completeness import Residuals, complete, gauss_legendre
from plumbline.attribution.gradient import differentiable
from plumbline.attribution.importances import Function, Importances, explained_output
from plumbline.attribution.inputs import read
from plumbline.data.instances import Instances
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


def slopes(model: Any, batch: Batch, vectors: torch.Tensor, classes: torch.Tensor, function: Function) -> torch.Tensor:
    """∂f_c/∂x of each row if these are its vectors, [B, T, d]. classes: [B]."""
    moved = vectors.detach().requires_grad_()
    with differentiable(model):
        # Rows do not touch each other, so the gradient of the sum holds each row's own gradient.
        output = explained_output(read(model, batch, moved).logits, classes, function).sum()
        (slope,) = torch.autograd.grad(output, moved)
    return slope


def along_the_path(
    model: Any,
    batch: Batch,
    vectors: torch.Tensor,
    baseline: torch.Tensor,
    classes: torch.Tensor,
    function: Function,
    points: Sequence[float] | np.ndarray,
    weights: Sequence[float] | np.ndarray,
    together: int = 1,
) -> torch.Tensor:
    """Σ_i w_i (x - b)_t · ∇f_c(b + a_i (x - b)) of every token, [B, T], with points a_i and weights w_i.

    vectors, baseline: x and b, [B, T, d]; classes: [B]; points: [n], or one for each row, [n, B]; weights: [n].
    `together` points of all rows are a pass, so that memory does not grow with their number; sums are in double
    precision.
    """
    difference = vectors - baseline
    places = torch.as_tensor(points, dtype=vectors.dtype, device=vectors.device).view(len(points), -1, 1, 1)
    shares = torch.as_tensor(weights, dtype=torch.float64, device=vectors.device)
    total = torch.zeros(vectors.shape[:2], dtype=torch.float64, device=vectors.device)
    for some, share in zip(places.split(together), shares.split(together), strict=True):
        moved = (baseline + some * difference).flatten(0, 1)
        slope = slopes(model, batch.repeat(len(some)), moved, classes.repeat(len(some)), function)
        products = torch.einsum("nbtd,btd->nbt", slope.unflatten(0, (len(some), -1)), difference)
        total += torch.einsum("n,nbt->bt", share, products.double())
    return total


def _scores(
    evaluator: Evaluator,
    question: AttributionBatch,
    function: Function,
    points: np.ndarray,
    weights: np.ndarray,
    rows: torch.Tensor | None = None,
) -> torch.Tensor:
    """The scores [B, T] of a question, or of some of its rows, with points [n] or [n, B] on the way."""
    asked = question if rows is None else question.take(rows)
    return along_the_path(
        evaluator.model,
        asked.batch,
        asked.vectors,
        asked.baseline,
        asked.classes,
        function,
        points,
        weights,
        copies(evaluator, asked.batch),
    )


@measure(
    "integrated-gradient-pad",
    limits={"steps": [1, None], "tolerance": [0, None]},
    needs=["gradient"],
    pixels=True,
    equation="|∫₀¹ (x - b)_t · ∇p_c(b + a (x - b)) da|",
)
def integrated_gradient_pad(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit"] = "probability",
    baseline: Literal["pad", "zero"] = "pad",
    texts: Literal["first", "both"] = "both",
    specials: bool = True,
    sign: Literal["absolute", "signed"] = "absolute",
    steps: int = 50,
    tolerance: float = 0.01,
) -> Importances:
    """Integrated gradients from a text of padding, by Gauss and Legendre's rule of so many points.

    The scores of all tokens, signed, sum to the change of the output from the baseline b to the text x. Where the sum
    is off by more than `tolerance` the points are doubled, up to 16 times as many; 0 leaves them as they are. With
    `texts` or `specials` some tokens stay as they are all the way.
    """
    at_least_one("steps", steps)
    residuals = Residuals(len(instances))

    def answer(question: AttributionBatch) -> torch.Tensor:
        ends = (torch.zeros_like(question.free), torch.ones_like(question.free))
        without, with_all = (outputs_with(evaluator, question, end[None], function)[0] for end in ends)
        values, missing = complete(
            _scores(evaluator, question, function, *gauss_legendre(steps)),
            with_all - without,
            lambda rows, points, weights: _scores(evaluator, question, function, points, weights, rows),
            steps,
            tolerance,
        )
        residuals.add(question.index, missing, with_all - without)
        return values.abs() if sign == "absolute" else values

    found = explain(evaluator, instances, answer, target, baseline, texts, specials)
    residuals.warn(evaluator, "Integrated gradients", steps, tolerance)
    return replace(found, residual=residuals.values)


@measure(
    "grad-shap",
    limits={"samples": [1, None]},
    needs=["gradient"],
    pixels=True,
    equation="|(1/k) Σ_i (x - b)_t · ∇p_c(b + a_i (x - b))|, a_i ~ U(0, 1)",
)
def grad_shap(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit"] = "probability",
    baseline: Literal["pad", "zero"] = "pad",
    texts: Literal["first", "both"] = "both",
    specials: bool = True,
    sign: Literal["absolute", "signed"] = "absolute",
    samples: int = 5,
) -> Importances:
    """Integrated gradients of a few points drawn at random, as Grad-SHAP's are if all its baselines are one.

    The points are drawn from the seed and the instance alone, so that order and batch do not matter.
    """
    at_least_one("samples", samples)

    def points(question: AttributionBatch) -> np.ndarray:
        drawn = [instances.generator(i, evaluator.seed).random(samples) for i in question.index]
        return np.stack(drawn, axis=1)

    def answer(question: AttributionBatch) -> torch.Tensor:
        values = _scores(evaluator, question, function, points(question), np.full(samples, 1 / samples))
        return values.abs() if sign == "absolute" else values

    return explain(evaluator, instances, answer, target, baseline, texts, specials)
