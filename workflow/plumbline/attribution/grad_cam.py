"""Grad-CAM: where the last convolution sees what speaks for a class (Selvaraju et al. 2017)."""

from typing import Literal

import torch

from plumbline.attribution.attribution_batch import AttributionBatch, explain
from plumbline.attribution.importances import Function, Importances, explained_output
from plumbline.data.instances import Instances
from plumbline.data.pixels import side
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


def map_weights(
    readout: torch.Tensor, logits: torch.Tensor, classes: torch.Tensor, function: Function, places: int
) -> torch.Tensor:
    """How the output changes with a map, on the average of its places: [B, K].

    readout: [C, K], which reads the means of the maps, each over so many places; logits: [B, C]; classes: [B]. By the
    chain rule: ∂f/∂A_kij = Σ_c ∂f/∂logit_c W_ck / places. Of a logit it is the class's row of W over the places, which
    makes the map that of CAM (Zhou et al. 2016) but for this factor.
    """
    with torch.enable_grad():
        outputs = logits.detach().requires_grad_()
        (slope,) = torch.autograd.grad(explained_output(outputs, classes, function).sum(), outputs)
    return slope @ readout / places


def resized(maps: torch.Tensor, size: int) -> torch.Tensor:
    """Maps [B, h, w] as large as a picture of this side, [B, side, side], by Pillow's bicubic rule.

    That rule's curve is PyTorch's only with `antialias`.
    """
    larger = torch.nn.functional.interpolate(
        maps[:, None], size=(size, size), mode="bicubic", align_corners=False, antialias=True
    )
    return larger[:, 0]


@measure(
    "grad-cam",
    needs=["maps", "pixels"],
    pixels=True,
    cheap=True,
    equation="max(0, resize(max(0, Σ_k w_k A_k)))_t, w_k = mean_ij ∂f_c/∂A_kij",
)
def grad_cam(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit"] = "logit",
) -> Importances:
    """The maps A of the last convolution, weighted by the gradient to them, where their sum speaks for the class.

    Bicubic resizing swings below 0 beside what is positive; there scores are 0. If nothing speaks for the class, all
    are.
    """
    model = evaluator.model

    @torch.no_grad()
    def answer(question: AttributionBatch) -> torch.Tensor:
        maps, logits = model.maps(question.batch), model(question.batch).logits
        weights = map_weights(model.readout_weights, logits, question.classes, function, maps[0, 0].numel())
        seen = torch.einsum("bk,bkhw->bhw", weights, maps).relu()
        return resized(seen, side(question.batch.ids.shape[1])).relu().flatten(1)

    return explain(evaluator, instances, answer, target, "pad", "first", False)
