"""Measures from one backward pass to the word vectors."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from plumbline.attribution.explained_output import ExplainedOutput
from plumbline.attribution.importances import Importances, computed_by, empty_scores, per_word
from plumbline.data.instances import Instances
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


@contextmanager
def differentiable(model: nn.Module) -> Iterator[None]:
    """Enable gradients through recurrent layers of a model in evaluation mode.

    cuDNN has a backward pass for them only in training mode. Only they are put into it, without dropout, which is all
    that the mode changes for them; the rest of the model stays in evaluation mode.
    """
    layers = [(layer, layer.training, layer.dropout) for layer in model.modules() if isinstance(layer, nn.RNNBase)]
    for layer, _, _ in layers:
        layer.training, layer.dropout = True, 0.0
    try:
        yield
    finally:
        for layer, training, dropout in layers:
            layer.training, layer.dropout = training, dropout


def _logits(model: Any, batch: Batch, embedded: torch.Tensor, modes: set[str]) -> dict[str, torch.Tensor]:
    """Logits [B, C] with the attention attached or held constant, from one pass through the encoder."""
    if modes == {"attached"}:
        return {"attached": model(batch, embedded).logits}
    encoded = model.encode(embedded, batch)
    attention = model.attend(encoded, batch)
    logits = {"detached": model.decode(encoded, attention.detach())}
    return logits | {"attached": model.decode(encoded, attention)} if "attached" in modes else logits


def vocabulary_root(model: Any) -> torch.Tensor:
    """R [d, d] with ‖R g‖ = ‖E g‖ for any g: E [V, d], the word vectors, is QR, and Q has orthonormal columns."""
    return torch.linalg.qr(model.embedding.weight.detach(), mode="r").R


def gradients(evaluator: Evaluator, instances: Instances, requests: Sequence[Mapping[str, Any]]) -> list[Importances]:
    """The importances by `gradient` for several sets of options, from one forward pass and one backward pass for each
    differentiated output."""
    scores = [empty_scores(instances) for _ in requests]
    targets = [np.empty(len(instances), dtype=np.int32) for _ in requests]
    differentiated = {(r["attention"], r["target"], r["function"]): [] for r in requests}  # type: ignore[var-annotated]
    for number, r in enumerate(requests):
        differentiated[r["attention"], r["target"], r["function"]].append(number)
    root = torch.empty(0)
    if any(r["reduction"] == "vocabulary" for r in requests):
        root = vocabulary_root(evaluator.model)
    reductions: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
        "dot": lambda gradient, embedded: (gradient * embedded).sum(dim=-1),
        "l1": lambda gradient, _: gradient.abs().sum(dim=-1),
        "l2": lambda gradient, _: gradient.norm(dim=-1),
        "vocabulary": lambda gradient, _: (gradient @ root.T).norm(dim=-1),
    }

    def work(index: np.ndarray, batch: Batch) -> None:
        embedded = evaluator.model.embedding(batch.ids).detach().requires_grad_()
        with differentiable(evaluator.model):
            logits = _logits(evaluator.model, batch, embedded, {attention for attention, _, _ in differentiated})
            for pass_, ((attention, target, function), numbers) in enumerate(differentiated.items(), 1):
                output = ExplainedOutput.of(target, function, logits[attention], instances.label[index])
                # Rows are independent, so the gradient of the sum holds each row's own gradient.
                (gradient,) = torch.autograd.grad(
                    output.value(logits[attention]).sum(), embedded, retain_graph=pass_ < len(differentiated)
                )
                for number in numbers:
                    request = requests[number]
                    values = reductions[request["reduction"]](gradient, embedded)
                    values = values.abs() if request["sign"] == "absolute" else values
                    per_word(values, instances, index, scores[number])
                    targets[number][index] = output.classes.cpu().numpy()

    evaluator.each(instances, work)
    return [Importances(*pair) for pair in zip(scores, targets, strict=True)]


@measure(
    "gradient-vocabulary",
    summary="The L2 norm of the gradient of the logit with respect to a word's whole one-hot encoding, an entry "
    "for each word of the vocabulary.",
    equation="‖E ∂f_c/∂e_t‖₂",
    cost="One forward and one backward pass per text, shared as for `gradient`, and one QR decomposition of the word "
    "vectors per model.",
    misleads="It is the sensitivity to any other word in this place, to first order; another word is a large change, "
    "for which the first order need not hold. The word's own vector enters only through the gradient.",
    citation="Madsen, Meade, Adlakha & Reddy (2022), Evaluating the Faithfulness of Importance Measures in NLP by "
    "Recursively Masking Allegedly Important Tokens and Retraining. Findings of EMNLP.",
    attention="attached",
    function="logit",
    reduction="vocabulary",
)
@measure(
    "gradient-channels",
    summary="The sum of the magnitudes of the gradient of the logit over a pixel's channels, or over the "
    "dimensions of a word's vector.",
    pixels=True,
    equation="Σ_k |∂f_c/∂e_tk|",
    misleads="It is sensitivity, not contribution, and does not say whether a pixel or word speaks for or against "
    "the class. Gradients of images vary from pixel to pixel, so that single pixels are noise.",
    citation=[
        "Simonyan, Vedaldi & Zisserman (2014), Deep Inside Convolutional Networks: Visualising Image Classification "
        "Models and Saliency Maps. ICLR Workshop.",
        "Zhou, Booth, Ribeiro & Shah (2022), Do Feature Attribution Methods Correctly Attribute Features? AAAI.",
    ],
    attention="attached",
    function="logit",
    reduction="l1",
)
@measure(
    "gradient-norm",
    summary="The L2 norm of the gradient of the logit with respect to a word's vector.",
    pixels=True,
    equation="‖∂f_c/∂e_t‖₂",
    misleads="It is sensitivity, not contribution: how far the output would move if the vector changed in the worst "
    "direction, where there may be no word. It does not say whether the word speaks for or against the class. Near 0 "
    "where the output is saturated.",
    citation=[
        "Li, Chen, Hovy & Jurafsky (2016), Visualizing and Understanding Neural Models in NLP. NAACL.",
        "Simonyan, Vedaldi & Zisserman (2014), Deep Inside Convolutional Networks: Visualising Image Classification "
        "Models and Saliency Maps. ICLR Workshop.",
    ],
    attention="attached",
    function="logit",
    reduction="l2",
)
@measure(
    "input-x-gradient",
    summary="A word's vector times the gradient of the logit with respect to it.",
    pixels=True,
    equation="|e_t · ∂f_c/∂e_t|",
    misleads="It is local: near 0 where the output is saturated, whatever the word contributes. A word with a short "
    "vector scores low, however much the output depends on it.",
    citation="Shrikumar, Greenside, Shcherbina & Kundaje (2016), Not Just a Black Box: Learning Important Features "
    "Through Propagating Activation Differences. arXiv:1605.01713.",
    attention="attached",
    function="logit",
)
@measure(
    "gradient-attached",
    summary="A word's vector times the gradient of the probability with respect to it, attention weights included.",
    pixels=True,
    equation="|e_t · ∂p_c/∂e_t|",
    misleads="It is local: near 0 where the output is saturated, whatever the word contributes. A word with a short "
    "vector scores low, however much the output depends on it.",
    citation="Shrikumar, Greenside, Shcherbina & Kundaje (2016), Not Just a Black Box: Learning Important Features "
    "Through Propagating Activation Differences. arXiv:1605.01713.",
    attention="attached",
)
@measure(
    "gradient",
    summary="A word's vector times the gradient of the probability with respect to it, with attention weights "
    "held constant.",
    needs=["gradient", "attention=detached:attention"],
    cheap=True,
    equation="|e_t · ∂p_c/∂e_t|, α constant",
    cost="One forward and one backward pass per text; the gradient measures of a model share the forward pass, and "
    "those of the same output the backward pass.",
    misleads="It is local: near 0 where the output is saturated, whatever the word contributes. With attention held "
    "constant, it misses all influence through the attention weights. A word with a short vector scores low, however "
    "much the output depends on it.",
    citation=[
        "Jain & Wallace (2019), Attention is not Explanation. NAACL.",
        "Shrikumar, Greenside, Shcherbina & Kundaje (2016), Not Just a Black Box: Learning Important Features "
        "Through Propagating Activation Differences. arXiv:1605.01713.",
    ],
)
@computed_by(gradients)
def gradient(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit", "difference"] = "probability",
    attention: Literal["detached", "attached"] = "detached",
    reduction: Literal["dot", "l1", "l2", "vocabulary"] = "dot",
    sign: Literal["absolute", "signed"] = "absolute",
) -> Importances:
    """The gradient of the explained output with respect to a word's vector, reduced to one number.

    The product with the vector is the derivative with respect to the word's entry in its one-hot encoding, as in Jain &
    Wallace; Zhou et al. sum magnitudes, and Madsen et al. take the norm with respect to the whole one-hot encoding.

    Options:
        attention: Whether attention weights are held constant (`detached`) or differentiated through (`attached`).
        reduction: How the gradient becomes one number: its product with the word's vector (`dot`), its L1 or L2 norm,
            or its L2 norm with respect to the entry of every word (`vocabulary`).
        sign: `absolute` takes magnitudes; `signed` keeps the sign of `dot`; norms have none.
    """
    request = {
        "target": target, "function": function, "attention": attention, "reduction": reduction, "sign": sign
    }  # fmt: skip
    return gradients(evaluator, instances, [request])[0]
