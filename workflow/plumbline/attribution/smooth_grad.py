"""SmoothGrad: the mean of the gradients at pictures with noise on them (Smilkov et al. 2017)."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import torch

from plumbline.attribution.attribution_batch import AttributionBatch, at_least_one, copies, explain
from plumbline.attribution.importances import Function, Importances, ScoreBuffer, computed_by
from plumbline.attribution.path import slopes
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


def smooth_grads(
    evaluator: Evaluator, instances: Instances, requests: Sequence[Mapping[str, Any]]
) -> list[Importances]:
    """What `smooth_grad` gives for each set of options; those that differ in the mean alone share their passes."""
    told: list[Importances | None] = [None] * len(requests)
    alike: dict[tuple[Any, ...], list[int]] = {}
    for number, request in enumerate(requests):
        at_least_one("samples", request["samples"])
        alike.setdefault(tuple(request[key] for key in ("target", "function", "noise", "samples")), []).append(number)
    for (target, function, noise, samples), numbers in alike.items():
        means = [requests[number]["mean"] for number in numbers]
        others = [ScoreBuffer(instances, "first", False) for _ in means[1:]]
        answer = partial(_answer, evaluator, instances, function, noise, samples, means, others)
        found = explain(evaluator, instances, answer, target, "pad", "first", False)
        for number, importances in zip(numbers, [found, *(other.importances() for other in others)], strict=True):
            told[number] = importances
    return [importances for importances in told if importances is not None]


def _answer(
    evaluator: Evaluator,
    instances: Instances,
    function: Function,
    noise: float,
    samples: int,
    means: Sequence[str],
    others: Sequence[ScoreBuffer],
    question: AttributionBatch,
) -> torch.Tensor:
    """The scores [B, T] of the first of the means; those of the others are gathered."""
    x, together = question.vectors, copies(evaluator, question.batch)
    width = noise * (x.amax((1, 2), keepdim=True) - x.amin((1, 2), keepdim=True))
    generators = [instances.generator(i, evaluator.seed) for i in question.index]
    totals = {mean: torch.zeros_like(x, dtype=torch.float64) for mean in means}
    for start in range(0, samples, together):
        shape = (min(together, samples - start), *x.shape[1:])
        # A row's next numbers, whatever is drawn at a time: single precision takes half a word of the stream, and then
        # the other half. Drawn on the host, so that every device has the same.
        drawn = np.stack([generator.standard_normal(shape, dtype=np.float32) for generator in generators], axis=1)
        moved = x + width * torch.from_numpy(drawn).to(x)
        rows = question.batch.repeat(len(moved)), moved.flatten(0, 1), question.classes.repeat(len(moved))
        slope = slopes(evaluator.model, *rows, function).view_as(moved)
        for mean, total in totals.items():
            total += (slope.abs() if mean == "magnitude" else slope).sum(0, dtype=torch.float64)
    first, *rest = [(totals[mean] / samples).abs().sum(-1) for mean in means]
    for gathered, values in zip(others, rest, strict=True):
        gathered.add(question.index, question.batch, values, question.classes)
    return first


@measure("smooth-grad-abs", equation="Σ_k (1/n) Σ_i |∂f_c/∂x_tk (x + ε_i)|, ε_i as of `smooth-grad`", mean="magnitude")
@measure(
    "smooth-grad",
    limits={"samples": [1, None]},
    needs=["gradient", "pixels"],
    pixels=True,
    cheap=True,
    equation="Σ_k |(1/n) Σ_i ∂f_c/∂x_tk (x + ε_i)|, ε_i ~ N(0, (0.15 (max x - min x))²)",
)
@computed_by(smooth_grads)
def smooth_grad(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit"] = "logit",
    mean: Literal["gradient", "magnitude"] = "gradient",
    noise: float = 0.15,
    samples: int = 50,
) -> Importances:
    """How the output changes with a pixel's channels, averaged over pictures with noise, and summed over the channels.

    The noise is normal, and as wide as this share of the way from the least to the greatest value of the picture, of
    which the model reads normalised channels. With `magnitude` the absolute gradients are averaged, as in Zhou et al.'s
    code. The noise is drawn from the seed and the instance alone.
    """
    request = {"target": target, "function": function, "mean": mean, "noise": noise, "samples": samples}
    return smooth_grads(evaluator, instances, [request])[0]
