"""Occlusion: put nothing in a token's place, run the model again, see how the output falls."""

from typing import Literal

import numpy as np
import torch

from plumbline.attribution.attribution_batch import AttributionBatch, copies, explain, outputs_with
from plumbline.attribution.importances import Importances
from plumbline.attribution.leave_one_out import RESOLUTION, rounding, without_rounding
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


@measure("occlusion", equation="|p_c(x) - p_c(x with b_t for x_t)|")
def occlusion(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit"] = "probability",
    baseline: Literal["pad", "zero"] = "pad",
    texts: Literal["first", "both"] = "both",
    specials: bool = True,
    sign: Literal["absolute", "signed"] = "absolute",
) -> Importances:
    """The fall of the output when a token's vector is replaced by its baseline's; the text stays as long as it is.

    Scores that differ by rounding alone are made equal.
    """

    def answer(question: AttributionBatch) -> torch.Tensor:
        numbers = (question.free.cumsum(1) - 1).clamp(min=0)
        # The outputs without feature 0, 1, … of each row, and before them those of the whole rows.
        dropped = torch.arange(-1, int(numbers.max()) + 1, device=numbers.device)[:, None, None]
        outputs = torch.cat(
            [
                outputs_with(evaluator, question, numbers != some, function)
                for some in dropped.split(copies(evaluator, question.batch))
            ]
        )
        falls = (outputs[0] - outputs[1:]).T.gather(1, numbers)
        falls = falls.abs() if sign == "absolute" else falls
        scores = falls.cpu().numpy()
        close = torch.full_like(falls, RESOLUTION).cpu().numpy()
        if function == "probability":
            kept = outputs[1:].T.gather(1, numbers).cpu().numpy()
            close = np.maximum(*(rounding(np.stack([p, 1 - p], -1)) for p in (kept, outputs[:1].T.cpu().numpy())))
        for row, there, near in zip(scores, question.free.cpu().numpy(), close, strict=True):
            row[there] = without_rounding(row[there], near[there])
        return torch.from_numpy(scores)

    return explain(evaluator, instances, answer, target, baseline, texts, specials)
