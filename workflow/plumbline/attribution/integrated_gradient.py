"""Integrated gradients: what each word adds on the straight way from vectors of zero to those of the text."""

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import torch

from plumbline.attribution.completeness import Residuals, complete
from plumbline.attribution.gradient import differentiable
from plumbline.attribution.importances import (
    Function,
    Importances,
    empty_scores,
    explained_output,
    per_word,
    target_classes,
)
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


def along_the_way(
    model: Any,
    batch: Batch,
    classes: torch.Tensor,
    function: Function,
    points: Iterable[float],
    weights: Iterable[float],
) -> torch.Tensor:
    """Σ_i w_i e_t · ∇f_c(a_i x) of every token, specials too, [B, L], with points a_i and weights w_i. classes: [B].

    One point of all rows is a pass, so that memory does not grow with their number; sums are in double precision.
    """
    embedded = model.embedding(batch.ids).detach()
    total = torch.zeros(batch.ids.shape, dtype=torch.float64, device=embedded.device)
    for point, weight in zip(points, weights, strict=True):
        scaled = (float(point) * embedded).requires_grad_()
        with differentiable(model):
            output = explained_output(model(batch, scaled).logits, classes, function)
            (slope,) = torch.autograd.grad(output.sum(), scaled)
        total += float(weight) * (slope * embedded).sum(dim=-1)
    return total


@measure("integrated-gradient-published", equation="|(1/k) Σ_i (i/k) e_t · ∇f_c(i/k x)|", weighting="published")
@measure(
    "integrated-gradient",
    needs=["gradient"],
    limits={"steps": [1, None], "tolerance": [0, None]},
    equation="|(1/k) Σ_i e_t · ∇f_c(i/k x)|",
)
def integrated_gradient(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit"] = "logit",
    steps: int = 50,
    rule: Literal["right", "midpoint"] = "right",
    weighting: Literal["correct", "published"] = "correct",
    sign: Literal["absolute", "signed"] = "absolute",
    tolerance: float = 0.01,
) -> Importances:
    """A word's vector times the mean gradient on the way from vectors of zero to those of the text.

    The path is cut into `steps` parts, each read at its end (`right`) or its middle. All tokens of the text are scaled,
    a second text is not; the class is that of the text itself. Where the sum of all scores is off the change of the
    output by more than `tolerance`, it is computed anew by Gauss and Legendre's rule, with twice as many points and so
    on, up to 16 times as many; 0 leaves it as it is. `published` is Madsen et al.'s code: it differentiates with
    respect to the vectors before they are scaled, so that each gradient is scaled too, and nothing sums to the change.
    """
    if steps < 1:
        raise PlumblineError(f"`steps` is {steps}; it must be 1 or more.")
    points = ((np.arange(steps) + (1 if rule == "right" else 0.5)) / steps).tolist()
    weights = [(point if weighting == "published" else 1) / steps for point in points]
    scores = empty_scores(instances)
    targets = np.empty(len(instances), dtype=np.int32)
    residuals = Residuals(len(instances)) if weighting == "correct" else None

    def work(index: np.ndarray, batch: Batch) -> None:
        with torch.no_grad():
            classes = target_classes(target, evaluator.model(batch).logits, instances.label[index])
        values = along_the_way(evaluator.model, batch, classes, function, points, weights)
        if residuals:
            change = _change(evaluator.model, batch, classes, function)
            values, missing = complete(
                values,
                change,
                lambda rows, *rule: along_the_way(evaluator.model, batch.take(rows), classes[rows], function, *rule),
                steps,
                tolerance,
            )
            residuals.add(index, missing, change)
        per_word(values.abs() if sign == "absolute" else values, instances, index, scores)
        targets[index] = classes.cpu().numpy()

    evaluator.each(instances, work)
    if residuals:
        residuals.warn(evaluator, "Integrated gradients", steps, tolerance)
    return Importances(scores, targets, residual=residuals.values if residuals else None)


@torch.no_grad()
def _change(model: Any, batch: Batch, classes: torch.Tensor, function: Function) -> torch.Tensor:
    """The change [B] of the output from vectors of zero to those of the text."""
    embedded = model.embedding(batch.ids)
    ends = [explained_output(model(batch, vectors).logits, classes, function) for vectors in (embedded, 0 * embedded)]
    return (ends[0] - ends[1]).double()
