"""Attention weights as importances, and their product with the gradient."""

from typing import Literal

import numpy as np
import torch

from plumbline.attribution.explained_output import ExplainedOutput
from plumbline.attribution.importances import Importances, ScoreBuffer
from plumbline.data.instances import Instances
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


@measure(
    "mean-attention",
    summary="The mean of the attention weights of all heads of each word.",
    needs=["heads"],
    equation="(1/K) Σ_k α_kt",
    misleads="As `attention`, and the mean hides heads that attend to different words for different classes.",
    citation="Lin et al. (2017), A Structured Self-attentive Sentence Embedding. ICLR.",
)
@measure(
    "attention",
    needs=["attention"],
    covers=["pair", "specials"],
    cheap=True,
    range=[0, 1],
    equation="α_t",
    cost="One forward pass per text.",
    misleads="A high weight need not mean influence: very different weights can give the same output. Hidden states "
    "mix words, so a weight belongs to a position more than to its word. Where weights are nearly uniform, their "
    "order is noise.",
    citation=[
        "Bahdanau, Cho & Bengio (2015), Neural Machine Translation by Jointly Learning to Align and Translate. ICLR.",
        "Jain & Wallace (2019), Attention is not Explanation. NAACL.",
    ],
)
@torch.no_grad()
def attention(evaluator: Evaluator, instances: Instances) -> Importances:
    """The attention weight of each word; with several heads, their mean.

    If the model also attends to second texts, their weights, which sum to 1 on their own, are included. Special tokens,
    which are never attended to, have 0.
    """
    buffer = ScoreBuffer(instances, "first")

    def work(index: np.ndarray, batch: Batch) -> None:
        nonlocal buffer
        output = evaluator.model(batch)
        weights = output.attention
        if output.pair_attention is not None:
            # Only the output shows whether a model attends to second texts.
            buffer = ScoreBuffer(instances) if buffer.pair is None else buffer
            weights = torch.cat([weights, output.pair_attention], dim=1)
        buffer.add(index, batch, weights)

    evaluator.each(instances, work)
    return buffer.importances(explained=False)


@measure(
    "attention-x-gradient",
    needs=["attention", "gradient"],
    cheap=True,
    equation="|α_t · ∂f_c/∂α_t|",
    cost="One forward pass per text, and a backward pass from the output to the attention weights alone.",
    misleads="It predicts the effect of a small change of one weight, which a softmax cannot make alone. Near 0 "
    "where the output is saturated. As with attention, a weight belongs to a position more than to its word.",
    citation="Serrano & Smith (2019), Is Attention Interpretable? ACL.",
)
def attention_x_gradient(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit", "difference"] = "probability",
    sign: Literal["absolute", "signed"] = "absolute",
) -> Importances:
    """A word's attention weight times the derivative of the explained output with respect to it.

    The weights are independent variables: the derivative ignores that a softmax makes them sum to 1. Of two texts only
    the first one's attention is scored, even if the model attends to both.
    """
    buffer = ScoreBuffer(instances, "first")

    def work(index: np.ndarray, batch: Batch) -> None:
        with torch.no_grad():
            encoded = evaluator.model.encode(evaluator.model.embedding(batch.ids), batch)
            weights = evaluator.model.attend(encoded, batch)
        weights.requires_grad_()
        logits = evaluator.model.decode(encoded, weights)
        output = ExplainedOutput.of(target, function, logits, instances.label[index])
        # Rows are independent, so the gradient of the sum holds each row's own gradient.
        (gradient,) = torch.autograd.grad(output.value(logits).sum(), weights)
        values = weights * gradient
        buffer.add(index, batch, values.abs() if sign == "absolute" else values, output.classes)

    evaluator.each(instances, work)
    return buffer.importances()
