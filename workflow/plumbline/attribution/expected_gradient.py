"""Expected gradients: integrated gradients from other pictures, drawn at random, in place of one baseline.

Erion et al. 2021; what SHAP's GradientExplainer computes, which takes a picture at a time.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
import torch

from plumbline.attribution.attribution_batch import AttributionBatch, at_least_one, copies, explain
from plumbline.attribution.importances import Importances
from plumbline.attribution.inputs import input_vectors
from plumbline.attribution.path import slopes
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


@measure(
    "expected-gradient",
    limits={"samples": [1, None]},
    needs=["gradient", "pixels"],
    pixels=True,
    cheap=True,
    equation="Σ_k |(1/n) Σ_i (x - b_i)_tk ∂f_c/∂x_tk (b_i + a_i (x - b_i))|, b_i of the explained, a_i ~ U(0, 1)",
)
def expected_gradient(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit"] = "logit",
    samples: int = 200,
) -> Importances:
    """Gradients on the way from other pictures times the way, averaged; magnitudes are summed over channels.

    The other pictures are drawn from all that are explained, the picture itself too, so that scores depend on which
    these are, but not on their order: they are numbered by split and instance, and the draws come from the seed and the
    instance alone.
    """
    at_least_one("samples", samples)
    if len(set(instances.lengths.tolist())) > 1:
        raise PlumblineError("Expected gradients mix pictures, so all must be of one size; cut them to one side.")
    background = np.lexsort((instances.instance, instances.split))

    def answer(question: AttributionBatch) -> torch.Tensor:
        x, batch = question.vectors, question.batch
        generators = [instances.generator(i, evaluator.seed) for i in question.index]
        others = background[np.stack([one.integers(len(background), size=samples) for one in generators], axis=1)]
        points = torch.from_numpy(np.stack([one.random(samples) for one in generators], axis=1)).to(x)[..., None, None]
        total = torch.zeros_like(x, dtype=torch.float64)
        for some in torch.arange(samples).split(copies(evaluator, batch)):
            rows = batch.repeat(len(some))
            ids = np.stack([instances.ids[i] for i in others[some.numpy()].ravel()])
            drawn = replace(rows, ids=torch.from_numpy(ids).to(rows.ids))
            way = x - input_vectors(evaluator.model, drawn).unflatten(0, (len(some), -1))
            moved = x - (1 - points[some.to(x.device)]) * way
            slope = slopes(
                evaluator.model, rows, moved.flatten(0, 1), question.classes.repeat(len(some)), function
            ).view_as(way)
            total += (way * slope).sum(0, dtype=torch.float64)
        return (total / samples).abs().sum(-1)

    return explain(evaluator, instances, answer, target, "pad", "first", False)
