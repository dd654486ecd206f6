"""Measures of the gradients on the straight path from a baseline to the text."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from plumbline.attribution.attribution_batch import AttributionBatch, copies_per_pass, explain, require_positive
from plumbline.attribution.completeness import Residuals, gauss_legendre, refine
from plumbline.attribution.gradient import differentiable
from plumbline.attribution.importances import AttributionOptions, Importances, passes_in
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


def output_gradients(model: Any, inputs: AttributionBatch, vectors: torch.Tensor) -> torch.Tensor:
    """The gradients ∂f/∂x of the explained outputs f of n copies of the rows at these vectors, [n, B, T, d]."""
    vectors = vectors.detach().requires_grad_()
    with differentiable(model):
        # Rows are independent, so the gradient of the sum holds each row's own gradient.
        (gradients,) = torch.autograd.grad(inputs.output.value(inputs.logits(model, vectors)).sum(), vectors)
    return gradients


def integrate_path(
    evaluator: Evaluator,
    inputs: AttributionBatch,
    points: Sequence[float] | np.ndarray,
    weights: Sequence[float] | np.ndarray,
) -> torch.Tensor:
    """Σ_i w_i (x - b)_t · ∇f(b + a_i (x - b)) of every token, [B, T], with points a_i and weights w_i.

    points: [n], or one for each row, [n, B]; weights: [n]. Each pass has as many points of every row as the token
    budget holds, so that memory does not depend on the number of points; sums are in double precision.
    """
    vectors, copies = inputs.vectors, copies_per_pass(evaluator, inputs.batch)
    difference = vectors - inputs.baseline
    a = torch.as_tensor(points, dtype=vectors.dtype, device=vectors.device).view(len(points), -1, 1, 1)
    w = torch.as_tensor(weights, dtype=torch.float64, device=vectors.device)
    total = torch.zeros(vectors.shape[:2], dtype=torch.float64, device=vectors.device)
    for some, weight in zip(a.split(copies), w.split(copies), strict=True):
        gradients = output_gradients(evaluator.model, inputs, inputs.baseline + some * difference)
        products = torch.einsum("nbtd,btd->nbt", gradients, difference)
        total += torch.einsum("n,nbt->bt", weight, products.double())
    return total


@measure(
    "integrated-gradient-pad",
    limits={"steps": [1, None], "tolerance": [0, None]},
    needs=["gradient"],
    pixels=True,
    equation="|∫₀¹ (x - b)_t · ∇p_c(b + a (x - b)) da|",
    cost="`steps` forward and backward passes per text and three forward passes; up to 31 times `steps` where "
    "`tolerance` is missed.",
    misleads="Scores are relative to padding, which may itself be evidence for a class. Points between padding and "
    "the text are out of the training distribution. Scores with a large `residual` are not the integral.",
    citation="Sundararajan, Taly & Yan (2017), Axiomatic Attribution for Deep Networks. ICML.",
)
@passes_in("bf16x3")
def integrated_gradient_pad(
    evaluator: Evaluator,
    instances: Instances,
    *,
    options: AttributionOptions = AttributionOptions(),
    sign: Literal["absolute", "signed"] = "absolute",
    steps: int = 50,
    tolerance: float = 0.01,
) -> Importances:
    """Integrated gradients from a baseline of padding, by Gauss-Legendre quadrature with `steps` points.

    The signed scores of all tokens sum to the change of the output from the baseline b to the text x. If the sum misses
    it by more than `tolerance`, the number of points is doubled, up to 16 times `steps`. Tokens that `texts` or
    `specials` exclude keep their vectors on the whole path.
    """
    require_positive("steps", steps)
    residuals = Residuals(len(instances))

    def score(inputs: AttributionBatch) -> torch.Tensor:
        masks = torch.stack([torch.ones_like(inputs.features), torch.zeros_like(inputs.features)])
        copies = copies_per_pass(evaluator, inputs.batch)
        output, baseline_output = torch.cat([inputs.masked_outputs(evaluator.model, m) for m in masks.split(copies)])
        change = output - baseline_output
        values, errors = refine(
            integrate_path(evaluator, inputs, *gauss_legendre(steps)),
            change,
            lambda rows, points, weights: integrate_path(evaluator, inputs.take(rows), points, weights),
            steps,
            tolerance,
        )
        residuals.add(inputs.index, errors, change)
        return values

    importances = explain(evaluator, instances, score, options, sign, steps)
    residuals.warn(evaluator, "Integrated gradients", steps, tolerance)
    return replace(importances, residual=residuals.values)


@measure(
    "grad-shap",
    limits={"samples": [1, None]},
    needs=["gradient"],
    pixels=True,
    stochastic=True,
    equation="|(1/k) Σ_i (x - b)_t · ∇p_c(b + a_i (x - b))|, a_i ~ U(0, 1)",
    cost="`samples` forward and backward passes per text and one forward pass.",
    misleads="With few random points two runs rank words differently: see the protocol `reliability`. With one "
    "baseline it is an estimate of integrated gradients, not of Shapley values, and misleads as these do.",
    citation="Lundberg & Lee (2017), A Unified Approach to Interpreting Model Predictions. NeurIPS.",
)
@passes_in("bf16x3")
def grad_shap(
    evaluator: Evaluator,
    instances: Instances,
    *,
    options: AttributionOptions = AttributionOptions(),
    sign: Literal["absolute", "signed"] = "absolute",
    samples: int = 5,
) -> Importances:
    """Integrated gradients with a few random points, which is Grad-SHAP with a single baseline.

    The points depend on the seed and the instance alone, so that order and batch do not matter.
    """
    require_positive("samples", samples)

    def score(inputs: AttributionBatch) -> torch.Tensor:
        points = np.stack([instances.generator(i, evaluator.seed).random(samples) for i in inputs.index], axis=1)
        return integrate_path(evaluator, inputs, points, np.full(samples, 1 / samples))

    return explain(evaluator, instances, score, options, sign, samples)
