"""Integrated gradients on the straight path from zero vectors to the word vectors of the text."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch

from plumbline.attribution.attribution_batch import copies_per_pass, require_positive
from plumbline.attribution.completeness import Residuals, refine
from plumbline.attribution.explained_output import ExplainedOutput
from plumbline.attribution.gradient import differentiable
from plumbline.attribution.importances import Importances, empty_scores, passes_in, per_word
from plumbline.attribution.inputs import is_prompted
from plumbline.data.instances import Instances
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


def integrate_from_zero(
    model: Any,
    batch: Batch,
    output: ExplainedOutput,
    points: Sequence[float] | np.ndarray,
    weights: Sequence[float] | np.ndarray,
    copies: int = 1,
) -> torch.Tensor:
    """Σ_i w_i e_t · ∇f(a_i x) of every token, specials too, [B, L], with points a_i and weights w_i.

    Each pass has `copies` points of every row, so that memory does not depend on the number of points; sums are in
    double precision. The words of a prompt keep their vectors.
    """
    embedded = model.embedding(batch.ids).detach()
    start = _zero(model, batch, embedded)
    a = torch.as_tensor(points, dtype=embedded.dtype, device=embedded.device).view(-1, 1, 1, 1)
    w = torch.as_tensor(weights, dtype=torch.float64, device=embedded.device)
    total = torch.zeros(batch.ids.shape, dtype=torch.float64, device=embedded.device)
    for some, weight in zip(a.split(copies), w.split(copies), strict=True):
        scaled = (start + some * (embedded - start)).flatten(0, 1).requires_grad_()
        with differentiable(model):
            logits = model(batch.repeat(len(some)), scaled).logits.unflatten(0, (len(some), -1))
            (gradient,) = torch.autograd.grad(output.value(logits).sum(), scaled)
        products = torch.einsum("nbtd,btd->nbt", gradient.unflatten(0, (len(some), -1)), embedded - start)
        total += torch.einsum("n,nbt->bt", weight, products.double())
    return total


def _zero(model: Any, batch: Batch, embedded: torch.Tensor) -> torch.Tensor:
    """The start of the path [B, L, d]: zeros, except for the words of a prompt."""
    kept = batch.present & ~batch.attendable if is_prompted(model) else torch.zeros_like(batch.present)
    return embedded * kept[..., None]


@measure(
    "integrated-gradient-published",
    summary="Integrated gradients as in Madsen et al.'s code, where each gradient on the path is scaled by its "
    "position.",
    equation="|(1/k) Σ_i (i/k) e_t · ∇f_c(i/k x)|",
    cost="`steps` forward and backward passes per text and one forward pass.",
    misleads="For comparison with published numbers only: points near the text count more, the scores do not sum to "
    "the change of the output, and no `residual` shows their error.",
    citation=[
        "Madsen, Meade, Adlakha & Reddy (2022), Evaluating the Faithfulness of Importance Measures in NLP by "
        "Recursively Masking Allegedly Important Tokens and Retraining. Findings of EMNLP.",
        "Sundararajan, Taly & Yan (2017), Axiomatic Attribution for Deep Networks. ICML.",
    ],
    weighting="published",
)
@measure(
    "integrated-gradient",
    needs=["gradient"],
    limits={"steps": [1, None], "tolerance": [0, None]},
    equation="|(1/k) Σ_i e_t · ∇f_c(i/k x)|",
    cost="`steps` forward and backward passes per text and two forward passes; up to 31 times `steps` where "
    "`tolerance` is missed.",
    misleads="Zero vectors are no text: scores are relative to them, and the path leaves the training distribution. "
    "A word with a vector near zero scores near 0. Scores with a large `residual` are not the integral.",
    citation="Sundararajan, Taly & Yan (2017), Axiomatic Attribution for Deep Networks. ICML.",
)
@passes_in("bf16x3-tf32", bilstm="tf32")
def integrated_gradient(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit", "difference"] = "logit",
    steps: int = 50,
    rule: Literal["right", "midpoint"] = "right",
    weighting: Literal["correct", "published"] = "correct",
    sign: Literal["absolute", "signed"] = "absolute",
    tolerance: float = 0.01,
) -> Importances:
    """A word's vector times the mean gradient on the path from zero vectors to those of the text.

    All tokens of the text are scaled, a second text is not; the class is that of the text itself. If the sum of all
    scores misses the change of the output by more than `tolerance`, the integral is recomputed by Gauss-Legendre
    quadrature, with the number of points doubled up to 16 times `steps`.

    Options:
        rule: Where each of the `steps` parts of the path is evaluated: at its end (`right`) or its midpoint.
        weighting: `published` is Madsen et al.'s code, which differentiates before vectors are scaled, so that
            gradients are scaled too and scores do not sum to the change.
    """
    require_positive("steps", steps)
    points = ((np.arange(steps) + (1 if rule == "right" else 0.5)) / steps).tolist()
    weights = [(point if weighting == "published" else 1) / steps for point in points]
    scores = empty_scores(instances)
    targets = np.empty(len(instances), dtype=np.int32)
    residuals = Residuals(len(instances)) if weighting == "correct" else None
    model = evaluator.model

    def work(index: np.ndarray, batch: Batch) -> None:
        copies = copies_per_pass(evaluator, batch)
        ends = _ends(model, batch, copies, both=bool(residuals))
        output = ExplainedOutput.of(target, function, ends[0], instances.label[index])
        values = integrate_from_zero(model, batch, output, points, weights, copies)
        if residuals:
            text, zero = output.value(ends)
            change = (text - zero).double()
            values, errors = refine(
                values,
                change,
                lambda rows, points, weights: integrate_from_zero(
                    model, batch.take(rows), output.take(rows), points, weights, copies
                ),
                steps,
                tolerance,
            )
            residuals.add(index, errors, change)
        per_word(values.abs() if sign == "absolute" else values, instances, index, scores)
        targets[index] = output.classes.cpu().numpy()

    evaluator.each(instances, work, steps)
    if residuals:
        residuals.warn(evaluator, "Integrated gradients", steps, tolerance)
    return Importances(scores, targets, residual=residuals.values if residuals else None)


@torch.no_grad()
def _ends(model: Any, batch: Batch, copies: int, both: bool) -> torch.Tensor:
    """The logits [1, B, C] of the text or, with those of zero vectors, [2, B, C]; `copies` is how many fit one pass."""
    embedded = model.embedding(batch.ids)
    ends = torch.stack([embedded, _zero(model, batch, embedded)] if both else [embedded])
    logits = [model(batch.repeat(len(some)), some.flatten(0, 1)).logits for some in ends.split(copies)]
    return torch.cat(logits).unflatten(0, (len(ends), -1))
