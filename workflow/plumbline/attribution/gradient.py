"""Measures that come from one backward pass to the word vectors."""

from typing import Any, Literal

import numpy as np
import torch

from plumbline.attribution.importances import Importances, empty_scores, explained_output, per_word, target_classes
from plumbline.data.instances import Instances
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


def _logits(model: Any, batch: Batch, embedded: torch.Tensor, attention: str) -> torch.Tensor:
    if attention == "attached":
        return model(batch, embedded).logits
    hidden = model.encode(embedded, batch)
    return model.decode(hidden, model.attend(hidden, batch).detach())


@measure("gradient-norm", equation="‖∂f_c/∂e_t‖₂", attention="attached", function="logit", reduction="l2")
@measure("input-x-gradient", equation="|e_t · ∂f_c/∂e_t|", attention="attached", function="logit")
@measure("gradient-attached", equation="|e_t · ∂p_c/∂e_t|", attention="attached")
@measure("gradient", needs=["gradient", "attention=detached:attention"], equation="|e_t · ∂p_c/∂e_t|, α constant")
def gradient(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit"] = "probability",
    attention: Literal["detached", "attached"] = "detached",
    reduction: Literal["dot", "l2"] = "dot",
    sign: Literal["absolute", "signed"] = "absolute",
) -> Importances:
    """How the explained output changes with a word's vector.

    `dot` multiplies by the vector, which is the derivative with respect to the word's entry in a one-hot code
    (Jain & Wallace's gradient); `l2` is the norm. With attention `detached` the weights are held constant.
    """
    scores = empty_scores(instances)
    targets = np.empty(len(instances), dtype=np.int32)
    for index, batch in evaluator.batches(instances.ids, instances.maskable):
        embedded = evaluator.model.embedding(batch.ids).detach().requires_grad_()
        # cuDNN has no backward for recurrent layers in evaluation mode; the plain kernels have.
        with torch.backends.cudnn.flags(enabled=False):
            logits = _logits(evaluator.model, batch, embedded, attention)
            classes = target_classes(target, logits, instances.label[index])
            # Rows do not touch each other, so the gradient of the sum holds each row's own gradient.
            (slope,) = torch.autograd.grad(explained_output(logits, classes, function).sum(), embedded)
        values = slope.norm(dim=-1) if reduction == "l2" else (slope * embedded).sum(dim=-1)
        per_word(values.abs() if sign == "absolute" else values, instances, index, scores)
        targets[index] = classes.cpu().numpy()
    return Importances(scores, targets)
