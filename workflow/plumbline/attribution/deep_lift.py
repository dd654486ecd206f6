"""DeepLIFT, gradient times difference, which was published under its name, and Deep-SHAP."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from torch.nn.functional import pad

from plumbline.attribution.attribution_batch import AttributionBatch, explain
from plumbline.attribution.differences import TensorWithBaseline
from plumbline.attribution.explained_output import ExplainedOutput
from plumbline.attribution.gradient import differentiable
from plumbline.attribution.importances import AttributionOptions, Importances
from plumbline.attribution.inputs import baseline_vectors, feature_mask, forward_vectors
from plumbline.data.instances import Instances
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure

Rule = Literal["rescale", "gradient"]
Mixed = Literal["no", "texts", "texts-and-labels"]


def difference_scores(
    model: Any,
    batch: Batch,
    vectors: torch.Tensor,
    baseline: torch.Tensor,
    output: ExplainedOutput,
    rule: Rule,
) -> torch.Tensor:
    """m_t · (x - b)_t of every token, [B, T], with DeepLIFT's multipliers m, or the gradient in their place.

    vectors, baseline: x and b, [B, T, d].
    """
    vectors = vectors.detach().requires_grad_()
    inputs = TensorWithBaseline.of(vectors, baseline) if rule == "rescale" else vectors
    with differentiable(model):
        values = output.value(forward_vectors(model, batch, inputs).logits)
        # Rows are independent, so the gradient of the sum holds each row's own gradient.
        values = values.value if isinstance(values, TensorWithBaseline) else values
        (multipliers,) = torch.autograd.grad(values.sum(), vectors)
    return (multipliers * (vectors.detach() - baseline)).sum(-1)


@contextmanager
def double_precision(model: Any) -> Iterator[None]:
    """Convert a model to double precision, and back afterwards."""
    dtype = model.embedding.weight.dtype
    model.double()
    try:
        yield
    finally:
        model.to(dtype)


def partners(instances: Instances) -> np.ndarray:
    """The position of each instance's partner: instances 2k and 2k + 1 of a split are partners, by their numbers, so
    that the order of `instances` does not matter; an odd last one is its own."""
    positions = np.arange(len(instances))
    for split in np.unique(instances.split):
        own = np.flatnonzero(instances.split == split)
        own = own[np.argsort(instances.instance[own], kind="stable")]
        first, second = own[:-1:2], own[1::2]
        positions[first], positions[second] = second, first
    return positions


def align_tokens(values: torch.Tensor, batch: Batch, other: Batch) -> torch.Tensor:
    """Values of the tokens of a batch, [B, T, d], with each text cut or zero-padded to its width in another batch."""
    widths, others = ([b.ids.shape[1], *([] if b.pair is None else [b.pair.ids.shape[1]])] for b in (batch, other))
    parts = zip(values.split(widths, dim=1), others, strict=True)
    return torch.cat([pad(part, (0, 0, 0, width - part.shape[1])) for part, width in parts], dim=1)


class Mixture:
    """Attributions of instances with the masks of their partners (the fault of Captum 0.2.0's Deep-SHAP).

    The partner's masks define padding and where attention may fall and, if labels are mixed, the partner's class is
    explained. A text shorter than its partner's is padded. In pairs, each text has the mask of the partner's; the
    study's transformers had one for both, as one long text.
    """

    def __init__(self, evaluator: Evaluator, instances: Instances, mixed: Mixed, options: AttributionOptions) -> None:
        self.evaluator, self.instances = evaluator, instances
        self.labels = mixed == "texts-and-labels"
        self.partners = partners(instances)
        # They are logits up to a constant.
        logarithms = torch.from_numpy(evaluator.probabilities(instances)).to(evaluator.device).log()
        self.output = ExplainedOutput.of(options.target, options.function, logarithms, instances.label)

    def scores(self, inputs: AttributionBatch, rule: Rule) -> torch.Tensor:
        """m_t · (x - b)_t of every token of a batch, [B, T]."""
        model, device = self.evaluator.model, inputs.vectors.device
        others = self.partners[inputs.index]
        values = torch.zeros(inputs.features.shape, dtype=inputs.vectors.dtype, device=device)

        def work(index: np.ndarray, batch: Batch) -> None:
            rows = torch.from_numpy(index).to(device)
            own = inputs.batch.take(rows)
            present = align_tokens(feature_mask(own)[..., None], own, batch)
            padding = baseline_vectors(model, batch, "pad")
            vectors, baseline = (
                torch.where(present, align_tokens(tensor[rows], own, batch), padding)
                for tensor in (inputs.vectors, inputs.baseline)
            )
            if self.labels:
                output = self.output.take(torch.from_numpy(others[index]).to(device))
            else:
                output, batch = inputs.output.take(rows), replace(batch, answers=own.answers)
            scores = difference_scores(model, batch, vectors, baseline, output, rule)
            values[rows] = align_tokens(scores[..., None], batch, own).squeeze(-1)

        self.evaluator.each(self.instances.take(others), work)
        return values


def explain_differences(
    evaluator: Evaluator,
    instances: Instances,
    rule: Rule,
    mixed: Mixed,
    options: AttributionOptions,
    sign: Literal["absolute", "signed"],
) -> Importances:
    """Scores by one of the rules. Multipliers are quotients of differences, which need double precision."""
    with double_precision(evaluator.model) if rule == "rescale" else nullcontext():
        mixture = None if mixed == "no" else Mixture(evaluator, instances, mixed, options)

        def score(inputs: AttributionBatch) -> torch.Tensor:
            arguments = inputs.batch, inputs.vectors, inputs.baseline, inputs.output
            values = difference_scores(evaluator.model, *arguments, rule)
            return values if mixture is None else (values + mixture.scores(inputs, rule)) / 2

        return explain(evaluator, instances, score, options, sign)


@measure(
    "grad-x-diff",
    summary="The gradient at the text times the difference from a baseline of padding; published as DeepLIFT by "
    "Neely et al. 2022.",
    equation="|(x - b)_t · ∂p_c/∂x_t|",
    cost="Two forward passes and one backward pass per text.",
    misleads="It has only the gradient at the text: near 0 where the output is saturated, and the scores do not sum "
    "to the change of the output. It was published as DeepLIFT where Captum had no module to attach its rules to.",
    citation=[
        "Ancona, Ceolini, Öztireli & Gross (2018), Towards Better Understanding of Gradient-based Attribution "
        "Methods for Deep Neural Networks. ICLR.",
        "Neely, Schouten, Bleeker & Lucic (2022), A Song of (Dis)agreement: Evaluating the Evaluation of Explainable "
        "Artificial Intelligence in Natural Language Processing. HHAI.",
    ],
    rule="gradient",
)
@measure(
    "deep-lift",
    needs=["gradient"],
    equation="|m_t · (x - b)_t|, Σ_t m_t · (x - b)_t = p_c(x) - p_c(b)",
    cost="About three forward passes and one backward pass per text, in double precision and with recurrent layers "
    "word by word.",
    misleads="Scores are relative to padding, which may itself be evidence for a class. The rules divide "
    "interactions of words by convention: networks with the same outputs may have different scores. Scores jump "
    "where a maximum, such as a pooled one, passes to another word.",
    citation="Shrikumar, Greenside & Kundaje (2017), Learning Important Features Through Propagating Activation "
    "Differences. ICML.",
)
def deep_lift(
    evaluator: Evaluator,
    instances: Instances,
    *,
    options: AttributionOptions = AttributionOptions(),
    sign: Literal["absolute", "signed"] = "absolute",
    rule: Literal["rescale", "gradient"] = "rescale",
) -> Importances:
    """The contribution of each token to the change of the output from a baseline of padding, by DeepLIFT or gradients.

    The rescale rule holds in every part of the model, recurrent layers and attention included, so that the signed
    scores of all tokens sum to the change. Captum's DeepLIFT reduces to rule `gradient` on models without activation
    modules to attach its rules to, such as those of Neely et al. 2022, so it is what they published as DeepLIFT.

    Options:
        rule: `rescale` is DeepLIFT's rule; `gradient` takes the gradient at the text instead.
    """
    return explain_differences(evaluator, instances, rule, "no", options, sign)


@measure(
    "deep-shap-published",
    summary="Deep-SHAP as in Neely et al. 2022: half of a score comes from the text with the masks and the class "
    "of another text.",
    equation="|½ Σ_{k ∈ {i, j}} (x_i - b)_t · ∂p_{c_k}/∂x_it with the masks of k|, j the partner of i",
    cost="Four forward and two backward passes per text.",
    misleads="For comparison with published numbers only: half of a score is computed with the masks and for the "
    "class of another text.",
    citation=[
        "Neely, Schouten, Bleeker & Lucic (2022), A Song of (Dis)agreement: Evaluating the Evaluation of Explainable "
        "Artificial Intelligence in Natural Language Processing. HHAI.",
        "Lundberg & Lee (2017), A Unified Approach to Interpreting Model Predictions. NeurIPS.",
    ],
    rule="gradient",
    mixed="texts-and-labels",
)
@measure(
    "deep-shap",
    needs=["gradient"],
    # Texts that are mixed have a partner among the others.
    whole=True,
    equation="|m_t · (x - b)_t|, the mean over baselines b, which are all alike",
    cost="About three forward passes and one backward pass per text, in double precision and with recurrent layers "
    "word by word.",
    misleads="With one baseline it is DeepLIFT, not a Shapley value, so that their agreement shows nothing. It "
    "misleads as DeepLIFT does.",
    citation=[
        "Lundberg & Lee (2017), A Unified Approach to Interpreting Model Predictions. NeurIPS.",
        "Shrikumar, Greenside & Kundaje (2017), Learning Important Features Through Propagating Activation "
        "Differences. ICML.",
    ],
)
def deep_shap(
    evaluator: Evaluator,
    instances: Instances,
    *,
    options: AttributionOptions = AttributionOptions(),
    sign: Literal["absolute", "signed"] = "absolute",
    rule: Literal["rescale", "gradient"] = "rescale",
    mixed: Literal["no", "texts", "texts-and-labels"] = "no",
) -> Importances:
    """DeepLIFT averaged over baselines; they are all the same text of padding, so it equals DeepLIFT.

    Not as published: Neely et al. 2022 explained two texts at a time with Captum 0.2.0, which by a fault also ran each
    of them with the masks and the class of the other, and took the mean.

    Options:
        rule: `rescale` is DeepLIFT's rule; `gradient` takes the gradient at the text, as the published code did.
        mixed: Whether the mean is taken with a run under the masks of another text (`texts`), or under its masks and
            class (`texts-and-labels`, as published).
    """
    return explain_differences(evaluator, instances, rule, mixed, options, sign)
