"""LIME on pictures: a linear model of what the model says of pictures of which random superpixels are left.

As LIME's own package does it for images, which takes a picture at a time; here pictures and samples share passes.
"""

from dataclasses import replace
from typing import Literal

import torch

from plumbline.attribution.attribution_batch import AttributionBatch, at_least_one, copies, explain, outputs_with
from plumbline.attribution.importances import Function, Importances
from plumbline.attribution.lime import drawn, ridge
from plumbline.attribution.patches import REFERENCE
from plumbline.attribution.quickshift import quickshift
from plumbline.data.instances import Instances
from plumbline.data.pixels import unpack
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure

# The width of the kernel of distances, and how much colours count beside places in superpixels.
WIDTH, RATIO = 0.25, 0.2


def closeness(left: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """The weights [n, B] of samples: √exp(-d² / WIDTH²), with d the cosine distance of z from that of all superpixels.

    left: [n, B, F] in double precision, z; counts: [B] the superpixels of each picture. The cosine is √(Σz / count).
    """
    away = 1 - (left.sum(-1) / counts).sqrt()
    return (-(away**2) / (2 * WIDTH**2)).exp()


def segments(batch: Batch, kernel_size: float) -> torch.Tensor:
    """The number of each pixel's superpixel, [B, T].

    The kernel's width is in pixels of a picture of 224 x 224. Colours count less as places have fewer pixels, so that
    smaller pictures fall into the same parts; kernels cannot be narrower than a pixel.
    """
    pictures = unpack(batch.ids.cpu().numpy())
    scale = pictures.shape[1] / REFERENCE
    return quickshift(pictures, max(1.0, kernel_size * scale), RATIO * scale, batch.ids.device).flatten(1)


def means_of_segments(vectors: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """For each pixel the mean vector of its segment, [B, T, d]. vectors: [B, T, d]; numbers: [B, T]."""
    places = numbers[..., None].expand_as(vectors)
    sums = torch.zeros_like(vectors).scatter_add(1, places, vectors)
    sizes = torch.zeros_like(vectors).scatter_add(1, places, torch.ones_like(vectors))
    return (sums / sizes.clamp(min=1)).gather(1, places)


def segment_coefficients(
    evaluator: Evaluator,
    instances: Instances,
    question: AttributionBatch,
    numbers: torch.Tensor,
    function: Function,
    samples: int,
) -> torch.Tensor:
    """What each pixel's segment weighs in the linear model of its picture, [B, T]. numbers: [B, T] its segment.

    The first sample is the picture itself.
    """
    counts = numbers.amax(1) + 1
    features = int(counts.max())
    generators = [instances.generator(i, evaluator.seed) for i in question.index]
    moments = torch.zeros(len(counts), features + 2, features + 2, dtype=torch.float64, device=numbers.device)
    together = copies(evaluator, question.batch)
    for start in range(0, samples, together):
        z = torch.from_numpy(drawn(generators, counts.tolist(), min(together, samples - start))).to(numbers.device)
        if start == 0:
            z[0] = torch.arange(features, device=z.device) < counts[:, None]
        kept = z.gather(2, numbers.expand(len(z), -1, -1))
        y = outputs_with(evaluator, question, kept, function).double()
        v = torch.cat([z.double(), torch.ones_like(y)[..., None], y[..., None]], dim=2)
        moments += torch.einsum("nbi,nbj->bij", closeness(z.double(), counts)[..., None] * v, v)
    return ridge(moments).gather(1, numbers)


@measure(
    "lime-superpixels",
    limits={"samples": [1, None]},
    needs=["pixels"],
    pixels=True,
    cheap=True,
    equation="|β_s(t)|, β = argmin Σ_i exp(-8 (1 - cos(1, z_i))²) (p_c(x_i) - β₀ - β · z_i)² + ‖β‖²",
)
def lime_superpixels(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit"] = "probability",
    hidden: Literal["black", "mean"] = "black",
    sign: Literal["absolute", "signed"] = "absolute",
    samples: int = 200,
    kernel_size: float = 4.0,
) -> Importances:
    """What a pixel's superpixel s(t) weighs in a linear model of the output of pictures with half of them hidden.

    Superpixels are quick shift's, with kernels so many pixels of a picture of 224 x 224 wide. One that is left out
    (z_s = 0, one time in two) is black, or of its `mean` colour. Samples count the more the more is left, and the
    linear model has a ridge. They are drawn from the seed and the instance alone.
    """
    at_least_one("samples", samples)
    if not kernel_size > 0:
        raise PlumblineError(f"`kernel_size` is {kernel_size}; it must be more than 0.")

    def answer(question: AttributionBatch) -> torch.Tensor:
        numbers = segments(question.batch, kernel_size)
        if hidden == "mean":
            question = replace(question, baseline=means_of_segments(question.vectors, numbers))
        values = segment_coefficients(evaluator, instances, question, numbers, function, samples)
        return values.abs() if sign == "absolute" else values

    return explain(evaluator, instances, answer, target, "pad", "first", False)
