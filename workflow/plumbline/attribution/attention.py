"""Attention weights as importances, and their product with the gradient."""

from typing import Literal

import numpy as np
import torch

from plumbline.attribution.importances import Importances, ScoreBuffer, explained_output, target_classes
from plumbline.data.instances import Instances
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


@measure("mean-attention", needs=["heads"], equation="(1/K) Σ_k α_kt")
@measure("attention", needs=["attention"], covers=["pair", "specials"], cheap=True, range=[0, 1], equation="α_t")
@torch.no_grad()
def attention(evaluator: Evaluator, instances: Instances) -> Importances:
    """The weight that the model's own attention gives each word; with several heads, their mean.

    A model that also attends to second texts tells those weights too, which sum to 1 by themselves. Special tokens,
    where attention never falls, have 0.
    """
    gathered = ScoreBuffer(instances, "first")

    def work(index: np.ndarray, batch: Batch) -> None:
        nonlocal gathered
        output = evaluator.model(batch)
        weights = output.attention
        if output.pair_attention is not None:
            # That a model attends to second texts is not known before it is asked.
            gathered = ScoreBuffer(instances) if gathered.pair is None else gathered
            weights = torch.cat([weights, output.pair_attention], dim=1)
        gathered.add(index, batch, weights)

    evaluator.each(instances, work)
    return gathered.importances(explained=False)


@measure("attention-x-gradient", needs=["attention", "gradient"], cheap=True, equation="|α_t · ∂f_c/∂α_t|")
def attention_x_gradient(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit"] = "probability",
    sign: Literal["absolute", "signed"] = "absolute",
) -> Importances:
    """A word's attention times how the explained output changes with it, all else and the other weights held constant.

    The weights are the variables: that they come from a softmax and sum to 1 plays no part. Of two texts it is the
    first one's attention alone, also where the model attends to both.
    """
    gathered = ScoreBuffer(instances, "first")

    def work(index: np.ndarray, batch: Batch) -> None:
        with torch.no_grad():
            encoded = evaluator.model.encode(evaluator.model.embedding(batch.ids), batch)
            weights = evaluator.model.attend(encoded, batch)
        weights.requires_grad_()
        logits = evaluator.model.decode(encoded, weights)
        classes = target_classes(target, logits, instances.label[index])
        # Rows do not touch each other, so the gradient of the sum holds each row's own gradient.
        (slope,) = torch.autograd.grad(explained_output(logits, classes, function).sum(), weights)
        values = weights * slope
        gathered.add(index, batch, values.abs() if sign == "absolute" else values, classes)

    evaluator.each(instances, work)
    return gathered.importances()
