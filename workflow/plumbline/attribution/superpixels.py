"""LIME on images: a linear model of the output for images with a random half of their superpixels kept.

As in LIME's own package, which explains one image at a time; here images and samples share passes.
"""

from dataclasses import replace
from typing import Literal

import torch

from plumbline.attribution.attribution_batch import AttributionBatch, explain, require_positive
from plumbline.attribution.importances import AttributionOptions, Importances
from plumbline.attribution.lime import feature_coefficients
from plumbline.attribution.patches import REFERENCE
from plumbline.attribution.quickshift import quickshift
from plumbline.data.instances import Instances
from plumbline.data.pixels import unpack
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure

# The width of the distance kernel, and the weight of colours relative to positions in superpixels.
WIDTH, RATIO = 0.25, 0.2


def sample_weights(z: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """The weights [n, B] of samples: √exp(-d² / WIDTH²), with d the cosine distance of z from a vector of ones.

    z: [n, B, F] in double precision; counts: [B] the superpixels of each image. The cosine is √(Σz / count).
    """
    distance = 1 - (z.sum(-1) / counts).sqrt()
    return (-(distance**2) / (2 * WIDTH**2)).exp()


def segment_numbers(batch: Batch, kernel_size: float) -> torch.Tensor:
    """The number of each pixel's superpixel, [B, T].

    The kernel's width is given for images of 224 x 224 pixels. It and the weight of colours are scaled to the size of
    the images, so that smaller images have the same superpixels; the kernel is at least a pixel wide.
    """
    images = unpack(batch.ids.cpu().numpy())
    scale = images.shape[1] / REFERENCE
    return quickshift(images, max(1.0, kernel_size * scale), RATIO * scale, batch.ids.device).flatten(1)


def segment_means(vectors: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """The mean vector of each pixel's segment, [B, T, d]. vectors: [B, T, d]; numbers: [B, T]."""
    index = numbers[..., None].expand_as(vectors)
    sums = torch.zeros_like(vectors).scatter_add(1, index, vectors)
    sizes = torch.zeros_like(vectors).scatter_add(1, index, torch.ones_like(vectors))
    return (sums / sizes.clamp(min=1)).gather(1, index)


@measure(
    "lime-superpixels",
    limits={"samples": [1, None]},
    needs=["pixels"],
    pixels=True,
    cheap=True,
    stochastic=True,
    equation="|β_s(t)|, β = argmin Σ_i exp(-8 (1 - cos(1, z_i))²) (p_c(x_i) - β₀ - β · z_i)² + ‖β‖²",
    cost="`samples` forward passes per image and one segmentation into superpixels.",
    misleads="All pixels of a superpixel have one score, so the segmentation decides what can be found. Black "
    "superpixels are out of the training distribution. With few `samples` two runs differ: see the protocol "
    "`reliability`.",
    citation="Ribeiro, Singh & Guestrin (2016), “Why Should I Trust You?”: Explaining the Predictions of Any "
    "Classifier. KDD.",
)
def lime_superpixels(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit", "difference"] = "probability",
    hidden: Literal["black", "mean"] = "black",
    sign: Literal["absolute", "signed"] = "absolute",
    samples: int = 200,
    kernel_size: float = 4.0,
) -> Importances:
    """The coefficient of a pixel's superpixel s(t) in a linear model of the output for images with half of them hidden.

    Superpixels come from quick shift; one is hidden (z_s = 0) with probability 1/2. Samples with more superpixels weigh
    more, and the model is a ridge regression. The first sample is the unperturbed image; the others depend on the seed
    and the instance alone.

    Options:
        hidden: Colour of a hidden superpixel: black, or its mean colour.
        kernel_size: Kernel of quick shift, in pixels of an image of 224 x 224; higher gives fewer, larger superpixels.
    """
    require_positive("samples", samples)
    if not kernel_size > 0:
        raise PlumblineError(f"`kernel_size` is {kernel_size}; it must be more than 0.")

    def score(inputs: AttributionBatch) -> torch.Tensor:
        numbers = segment_numbers(inputs.batch, kernel_size)
        if hidden == "mean":
            inputs = replace(inputs, baseline=segment_means(inputs.vectors, numbers))
        counts = numbers.amax(1) + 1
        return feature_coefficients(
            evaluator, instances, inputs, numbers, samples, lambda z, _: sample_weights(z, counts), whole_first=True
        )

    options = AttributionOptions(target, function, texts="first", specials=False)
    return explain(evaluator, instances, score, options, sign)
