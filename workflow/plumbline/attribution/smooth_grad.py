"""SmoothGrad: the mean of the gradients at images with noise (Smilkov et al. 2017)."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import torch

from plumbline.attribution.attribution_batch import AttributionBatch, copies_per_pass, explain, require_positive
from plumbline.attribution.importances import AttributionOptions, Importances, ScoreBuffer, computed_by
from plumbline.attribution.path import output_gradients
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


def smooth_grads(
    evaluator: Evaluator, instances: Instances, requests: Sequence[Mapping[str, Any]]
) -> list[Importances]:
    """The importances by `smooth_grad` for several sets of options; those that differ only in `mean` share passes."""
    results: dict[int, Importances] = {}
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, request in enumerate(requests):
        require_positive("samples", request["samples"])
        groups.setdefault(tuple(request[key] for key in ("target", "function", "noise", "samples")), []).append(number)
    for (target, function, noise, samples), numbers in groups.items():
        means = [requests[number]["mean"] for number in numbers]
        buffers = [ScoreBuffer(instances, "first", False) for _ in means[1:]]
        score = partial(_score, evaluator, instances, noise, samples, means, buffers)
        options = AttributionOptions(target, function, texts="first", specials=False)
        first = explain(evaluator, instances, score, options)
        results |= zip(numbers, [first, *(buffer.importances() for buffer in buffers)], strict=True)
    return [results[number] for number in range(len(requests))]


def _score(
    evaluator: Evaluator,
    instances: Instances,
    noise: float,
    samples: int,
    means: Sequence[str],
    buffers: Sequence[ScoreBuffer],
    inputs: AttributionBatch,
) -> torch.Tensor:
    """The scores [B, T] of the first of the means; those of the others go to the buffers."""
    x, copies = inputs.vectors, copies_per_pass(evaluator, inputs.batch)
    width = noise * (x.amax((1, 2), keepdim=True) - x.amin((1, 2), keepdim=True))
    generators = [instances.generator(i, evaluator.seed) for i in inputs.index]
    totals = {mean: torch.zeros_like(x, dtype=torch.float64) for mean in means}
    for start in range(0, samples, copies):
        shape = (min(copies, samples - start), *x.shape[1:])
        # The noise of a row does not depend on the number of samples per pass: each single-precision number takes half
        # a word of the generator's stream, and the next one the other half. Drawn on the host, so that all devices have
        # the same noise.
        drawn = np.stack([generator.standard_normal(shape, dtype=np.float32) for generator in generators], axis=1)
        noisy = x + width * torch.from_numpy(drawn).to(x)
        gradients = output_gradients(evaluator.model, inputs, noisy)
        for mean, total in totals.items():
            total += (gradients.abs() if mean == "magnitude" else gradients).sum(0, dtype=torch.float64)
    first, *rest = [(totals[mean] / samples).abs().sum(-1) for mean in means]
    for buffer, values in zip(buffers, rest, strict=True):
        buffer.add(inputs.index, inputs.batch, values, inputs.output.classes)
    return first


@measure(
    "smooth-grad-abs",
    summary="The magnitude of the gradient with respect to a pixel's channels, averaged over noisy images and "
    "summed over channels.",
    equation="Σ_k (1/n) Σ_i |∂f_c/∂x_tk (x + ε_i)|, ε_i as of `smooth-grad`",
    misleads="As `smooth-grad`; and magnitudes do not cancel, so that a pixel scores high where the gradient only "
    "varies.",
    citation=[
        "Smilkov, Thorat, Kim, Viégas & Wattenberg (2017), SmoothGrad: Removing Noise by Adding Noise. "
        "arXiv:1706.03825.",
        "Zhou, Booth, Ribeiro & Shah (2022), Do Feature Attribution Methods Correctly Attribute Features? AAAI.",
    ],
    mean="magnitude",
)
@measure(
    "smooth-grad",
    limits={"samples": [1, None]},
    needs=["gradient", "pixels"],
    pixels=True,
    cheap=True,
    stochastic=True,
    equation="Σ_k |(1/n) Σ_i ∂f_c/∂x_tk (x + ε_i)|, ε_i ~ N(0, (0.15 (max x - min x))²)",
    cost="`samples` forward and backward passes per image and one forward pass.",
    misleads="A smoother map looks better but need not be more faithful: it is the gradient of another function, "
    "averaged over noise. `noise` decides what is seen.",
    citation=[
        "Smilkov, Thorat, Kim, Viégas & Wattenberg (2017), SmoothGrad: Removing Noise by Adding Noise. "
        "arXiv:1706.03825.",
        "Hooker, Erhan, Kindermans & Kim (2019), A Benchmark for Interpretability Methods in Deep Neural Networks. "
        "NeurIPS.",
    ],
)
@computed_by(smooth_grads)
def smooth_grad(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit", "difference"] = "logit",
    mean: Literal["gradient", "magnitude"] = "gradient",
    noise: float = 0.15,
    samples: int = 50,
) -> Importances:
    """The gradient with respect to a pixel's channels, averaged over noisy images; its magnitude summed over channels.

    The noise is normal and depends on the seed and the instance alone.

    Options:
        mean: What is averaged: gradients, or their magnitudes as in Zhou et al.'s code.
        noise: Standard deviation of the noise, as a share of the range of the image's normalised channels.
    """
    request = {"target": target, "function": function, "mean": mean, "noise": noise, "samples": samples}
    return smooth_grads(evaluator, instances, [request])[0]
