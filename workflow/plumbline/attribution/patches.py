"""Occlusion of images: the drop of the output when a square of pixels is covered."""

from typing import Literal

import torch

from plumbline.attribution.attribution_batch import AttributionBatch, explain, require_positive
from plumbline.attribution.importances import AttributionOptions, Importances
from plumbline.attribution.occlusion import occluded_outputs
from plumbline.data.instances import Instances
from plumbline.data.pixels import side_length
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure

# The image side that pixel sizes in options refer to, whatever the side of the images.
REFERENCE = 224


def patch_numbers(size: int, patch: int) -> torch.Tensor:
    """The number of each pixel's patch, [size * size], row by row; the last patches may be smaller."""
    numbers = torch.arange(size) // patch
    return (numbers[:, None] * (int(numbers[-1]) + 1) + numbers).flatten()


@measure(
    "occlusion-patch",
    limits={"patch": [1, None]},
    needs=["pixels"],
    pixels=True,
    cheap=True,
    equation="|f_c(x) - f_c(x with b in the patch of t)|",
    cost="One forward pass per patch of an image, about (224 / `patch`)²: 196 by default.",
    misleads="Evidence that is spread over several patches, or redundant, scores low in each. A black square is out "
    "of the training distribution and may itself be evidence for a class.",
    citation="Zeiler & Fergus (2014), Visualizing and Understanding Convolutional Networks. ECCV.",
)
def occlusion_patch(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit", "difference"] = "logit",
    baseline: Literal["pad", "zero"] = "pad",
    sign: Literal["absolute", "signed"] = "absolute",
    patch: int = 16,
) -> Importances:
    """The drop of the output when the square patch that contains a pixel is covered.

    Patches do not overlap.

    Options:
        baseline: Colour of the cover: black (`pad`) or the grey of ImageNet's mean (`zero`).
        patch: Side of a patch, in pixels of an image of 224 x 224; it is scaled to the images, with at least 1 pixel.
    """
    require_positive("patch", patch)

    def score(inputs: AttributionBatch) -> torch.Tensor:
        size = side_length(inputs.batch.ids.shape[1])
        numbers = patch_numbers(size, max(1, round(patch * size / REFERENCE))).to(inputs.vectors.device)
        outputs = occluded_outputs(evaluator, inputs, numbers)
        return (outputs[0] - outputs[1:]).T[:, numbers]

    options = AttributionOptions(target, function, baseline, texts="first", specials=False)
    return explain(evaluator, instances, score, options, sign)
