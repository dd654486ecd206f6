"""Occlusion: the drop of the output when a token's vector is replaced by the baseline's."""

from typing import Literal

import numpy as np
import torch

from plumbline.attribution.attribution_batch import AttributionBatch, copies_per_pass, explain
from plumbline.attribution.importances import AttributionOptions, Importances, passes_in
from plumbline.attribution.leave_one_out import RESOLUTION, merge_rounding_ties, rounding_error
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


def occluded_outputs(evaluator: Evaluator, inputs: AttributionBatch, numbers: torch.Tensor) -> torch.Tensor:
    """The outputs [1 + F, B] of the unperturbed rows, then those without feature 0, 1, …; numbers: [B, T] or [T]."""
    occluded = torch.arange(-1, int(numbers.max()) + 1, device=numbers.device)[:, None, None]
    parts = occluded.split(copies_per_pass(evaluator, inputs.batch))
    return torch.cat([inputs.masked_outputs(evaluator.model, numbers != part) for part in parts])


@measure(
    "occlusion",
    equation="|p_c(x) - p_c(x with b_t for x_t)|",
    cost="One forward pass per token of a text, so that the work grows at least with the square of its length.",
    misleads="With redundant evidence each word alone is dispensable, and all score low. Padding inside a text is "
    "out of the training distribution, so a high score may be the model's reaction to padding.",
    citation=[
        "Zeiler & Fergus (2014), Visualizing and Understanding Convolutional Networks. ECCV.",
        "Li, Monroe & Jurafsky (2016), Understanding Neural Networks through Representation Erasure. arXiv:1612.08220.",
    ],
)
@passes_in("bf16x3")
def occlusion(
    evaluator: Evaluator,
    instances: Instances,
    *,
    options: AttributionOptions = AttributionOptions(),
    sign: Literal["absolute", "signed"] = "absolute",
) -> Importances:
    """The drop of the output when a token's vector is replaced by its baseline's; the text keeps its length.

    Scores that differ by rounding alone are set equal.
    """

    def score(inputs: AttributionBatch) -> torch.Tensor:
        numbers = (inputs.features.cumsum(1) - 1).clamp(min=0)
        outputs = occluded_outputs(evaluator, inputs, numbers)
        drops = (outputs[0] - outputs[1:]).T.gather(1, numbers)
        scores = (drops.abs() if sign == "absolute" else drops).cpu().numpy()
        # Both logits of a difference are rounded.
        resolution = np.full_like(scores, 2 * RESOLUTION if options.function == "difference" else RESOLUTION)
        if options.function == "probability":
            before, after = outputs[:1].T.cpu().numpy(), outputs[1:].T.gather(1, numbers).cpu().numpy()
            resolution = np.maximum(*(rounding_error(np.stack([p, 1 - p], -1)) for p in (after, before)))
        for row, features, close in zip(scores, inputs.features.cpu().numpy(), resolution, strict=True):
            row[features] = merge_rounding_ties(row[features], close[features])
        return torch.from_numpy(scores)

    return explain(evaluator, instances, score, options)
