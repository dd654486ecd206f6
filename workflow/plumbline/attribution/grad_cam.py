"""Grad-CAM: the maps of the last convolution weighted by their gradients (Selvaraju et al. 2017)."""

from typing import Literal

import torch

from plumbline.attribution.attribution_batch import AttributionBatch, explain
from plumbline.attribution.explained_output import ExplainedOutput
from plumbline.attribution.importances import AttributionOptions, Importances
from plumbline.data.instances import Instances
from plumbline.data.pixels import side_length
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


def map_weights(readout: torch.Tensor, logits: torch.Tensor, output: ExplainedOutput, positions: int) -> torch.Tensor:
    """The gradient of the output with respect to each map, averaged over its positions: [B, K].

    readout: W [C, K], applied to the means of the maps over their positions; logits: [B, C]. By the chain rule,
    ∂f/∂A_kij = Σ_c ∂f/∂logit_c W_ck / positions. For a logit it is the class's row of W divided by the number of
    positions, which is CAM (Zhou et al. 2016) up to this factor.
    """
    with torch.enable_grad():
        logits = logits.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(output.value(logits).sum(), logits)
    return gradient @ readout / positions


def resize_maps(maps: torch.Tensor, size: int) -> torch.Tensor:
    """Maps [B, h, w] resized to [B, size, size] with Pillow's bicubic kernel, which PyTorch uses with `antialias`."""
    return torch.nn.functional.interpolate(
        maps[:, None], size=(size, size), mode="bicubic", align_corners=False, antialias=True
    )[:, 0]


@measure(
    "grad-cam",
    needs=["maps", "pixels"],
    pixels=True,
    cheap=True,
    equation="max(0, resize(max(0, Σ_k w_k A_k)))_t, w_k = mean_ij ∂f_c/∂A_kij",
    cost="Three forward passes per image; the gradient is that of the output layer alone.",
    misleads="It is as coarse as the last maps: small regions are blurred into their surroundings. Evidence against "
    "the class is cut off, and all scores are 0 where no position supports it.",
    citation="Selvaraju, Cogswell, Das, Vedantam, Parikh & Batra (2017), Grad-CAM: Visual Explanations from Deep "
    "Networks via Gradient-based Localization. ICCV.",
)
def grad_cam(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit", "difference"] = "logit",
) -> Importances:
    """The positive part of the sum of the last convolution's maps A, weighted by their mean gradients.

    Bicubic resizing undershoots next to positive values; these scores are set to 0. If no position supports the class,
    all scores are 0.
    """
    model = evaluator.model

    @torch.no_grad()
    def score(inputs: AttributionBatch) -> torch.Tensor:
        maps, logits = model.maps(inputs.batch), model(inputs.batch).logits
        weights = map_weights(model.readout_weights, logits, inputs.output, maps[0, 0].numel())
        summed = torch.einsum("bk,bkhw->bhw", weights, maps).relu()
        return resize_maps(summed, side_length(inputs.batch.ids.shape[1])).relu().flatten(1)

    options = AttributionOptions(target, function, texts="first", specials=False)
    return explain(evaluator, instances, score, options)
