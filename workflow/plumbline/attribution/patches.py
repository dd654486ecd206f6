"""Occlusion of pictures: cover a square of pixels, run the model again, see how the output falls."""

from typing import Literal

import torch

from plumbline.attribution.attribution_batch import AttributionBatch, at_least_one, copies, explain, outputs_with
from plumbline.attribution.importances import Importances
from plumbline.data.instances import Instances
from plumbline.data.pixels import side
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure

# The side of the pictures in whose pixels a patch is given, whatever side they have here.
REFERENCE = 224


def patches(size: int, patch: int) -> torch.Tensor:
    """The number of the patch that each pixel of a picture lies in, [size * size], row by row; those at the end may be
    smaller."""
    places = torch.arange(size) // patch
    return (places[:, None] * (int(places[-1]) + 1) + places).flatten()


@measure(
    "occlusion-patch",
    limits={"patch": [1, None]},
    needs=["pixels"],
    pixels=True,
    cheap=True,
    equation="|f_c(x) - f_c(x with b in the patch of t)|",
)
def occlusion_patch(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit"] = "logit",
    baseline: Literal["pad", "zero"] = "pad",
    sign: Literal["absolute", "signed"] = "absolute",
    patch: int = 16,
) -> Importances:
    """The fall of the output when the square patch that a pixel lies in is covered.

    It is covered with black (`pad`), or with the grey of ImageNet's mean (`zero`). Patches lie side by side. Their side
    is in pixels of a picture of 224 x 224, and as large a part of the side here; at least 1 pixel.
    """
    at_least_one("patch", patch)

    def answer(question: AttributionBatch) -> torch.Tensor:
        size = side(question.batch.ids.shape[1])
        numbers = patches(size, max(1, round(patch * size / REFERENCE))).to(question.vectors.device)
        # The outputs without patch 0, 1, …, and before them those of the whole pictures.
        covered = torch.arange(-1, int(numbers.max()) + 1, device=numbers.device)[:, None, None]
        outputs = torch.cat(
            [
                outputs_with(evaluator, question, numbers != some, function)
                for some in covered.split(copies(evaluator, question.batch))
            ]
        )
        falls = (outputs[0] - outputs[1:]).T[:, numbers]
        return falls.abs() if sign == "absolute" else falls

    return explain(evaluator, instances, answer, target, baseline, "first", False)
