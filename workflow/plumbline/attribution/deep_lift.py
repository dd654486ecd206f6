"""DeepLIFT, gradient times difference, which was published under its name, and Deep-SHAP."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from torch.nn.functional import pad

from plumbline.attribution.attribution_batch import AttributionBatch, explain
from plumbline.attribution.differences import Beside
from plumbline.attribution.gradient import differentiable
from plumbline.attribution.importances import Function, Importances, Target, explained_output, target_classes
from plumbline.attribution.inputs import Baseline, Explained, baseline_of, features, read
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
    classes: torch.Tensor,
    function: Function,
    rule: Rule,
) -> torch.Tensor:
    """m_t · (x - b)_t of every token, [B, T], with DeepLIFT's multipliers m, or with the gradient in their place.

    vectors, baseline: x and b, [B, T, d]; classes: [B].
    """
    vectors = vectors.detach().requires_grad_()
    entered = Beside.of(vectors, baseline) if rule == "rescale" else vectors
    with differentiable(model):
        output = explained_output(read(model, batch, entered).logits, classes, function)
        # Rows do not touch each other, so the gradient of the sum holds each row's own gradient.
        own = output.own if isinstance(output, Beside) else output
        (multipliers,) = torch.autograd.grad(own.sum(), vectors)
    return (multipliers * (vectors.detach() - baseline)).sum(-1)


@contextmanager
def in_double(model: Any) -> Iterator[None]:
    """Let a model compute in double precision, and give it back as it was."""
    before = model.embedding.weight.dtype
    model.double()
    try:
        yield
    finally:
        model.to(before)


def partners(instances: Instances) -> np.ndarray:
    """Where each instance's partner is: 2k and 2k + 1 of a split, by number, are each other's; an odd last is its own.

    So that it does not depend on the order in which they come.
    """
    found = np.arange(len(instances))
    for split in np.unique(instances.split):
        places = np.flatnonzero(instances.split == split)
        places = places[np.argsort(instances.instance[places], kind="stable")]
        first, second = places[:-1:2], places[1::2]
        found[first], found[second] = second, first
    return found


def laid_out(values: torch.Tensor, batch: Batch, other: Batch) -> torch.Tensor:
    """What belongs to the tokens of a batch, [B, T, d], put where another batch has such tokens.

    Each text is cut, or filled up with zeros, to the width that it has there.
    """
    wide, wanted = ([b.ids.shape[1], *([] if b.pair is None else [b.pair.ids.shape[1]])] for b in (batch, other))
    parts = zip(values.split(wide, dim=1), wanted, strict=True)
    return torch.cat([pad(part, (0, 0, 0, width - part.shape[1])) for part, width in parts], dim=1)


class Mixture:
    """The attributions of instances that are read as if they were their partners (Captum 0.2.0's Deep-SHAP).

    It is the partner's masks that say what is padding and where attention may fall, and if labels are mixed the
    partner's class that is explained. Where a text is shorter than its partner's, padding follows it. Of pairs, each
    text has the mask of the partner's; the study's transformers had one for both, as one long text.
    """

    def __init__(self, evaluator: Evaluator, instances: Instances, mixed: Mixed, target: Target) -> None:
        self.evaluator, self.instances = evaluator, instances
        self.labels = mixed == "texts-and-labels"
        self.partners = partners(instances)
        told = torch.from_numpy(evaluator.probabilities(instances))
        self.classes = target_classes(target, told, instances.label)

    def attributed(self, question: AttributionBatch, function: Function, rule: Rule) -> torch.Tensor:
        """m_t · (x - b)_t of every token of a question, [B, T]."""
        model, device = self.evaluator.model, question.vectors.device
        others = self.partners[question.index]
        values = torch.zeros(question.free.shape, dtype=question.vectors.dtype, device=device)

        def work(index: np.ndarray, batch: Batch) -> None:
            rows = torch.from_numpy(index).to(device)
            own = question.batch.take(rows)
            there = laid_out(features(own)[..., None], own, batch)
            padding = baseline_of(model, batch, "pad")
            vectors, baseline = (
                torch.where(there, laid_out(of[rows], own, batch), padding)
                for of in (question.vectors, question.baseline)
            )
            classes = question.classes[rows]
            if self.labels:
                classes = self.classes[others[index]].to(device)
            else:
                batch = replace(batch, answers=own.answers)
            found = difference_scores(model, batch, vectors, baseline, classes, function, rule)
            values[rows] = laid_out(found[..., None], batch, own).squeeze(-1)

        self.evaluator.each(self.instances.take(others), work)
        return values


def explain_differences(
    evaluator: Evaluator,
    instances: Instances,
    rule: Rule,
    mixed: Mixed,
    function: Function,
    sign: Literal["absolute", "signed"],
    target: Target,
    baseline: Baseline,
    texts: Explained,
    specials: bool,
) -> Importances:
    """Scores by a rule for differences. Multipliers are quotients of differences, which take double precision."""
    with in_double(evaluator.model) if rule == "rescale" else nullcontext():
        mixture = None if mixed == "no" else Mixture(evaluator, instances, mixed, target)

        def answer(question: AttributionBatch) -> torch.Tensor:
            asked = question.batch, question.vectors, question.baseline, question.classes
            values = difference_scores(evaluator.model, *asked, function, rule)
            if mixture is not None:
                values = (values + mixture.attributed(question, function, rule)) / 2
            return values.abs() if sign == "absolute" else values

        return explain(evaluator, instances, answer, target, baseline, texts, specials)


@measure("grad-x-diff", equation="|(x - b)_t · ∂p_c/∂x_t|", rule="gradient")
@measure("deep-lift", needs=["gradient"], equation="|m_t · (x - b)_t|, Σ_t m_t · (x - b)_t = p_c(x) - p_c(b)")
def deep_lift(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit"] = "probability",
    baseline: Literal["pad", "zero"] = "pad",
    texts: Literal["first", "both"] = "both",
    specials: bool = True,
    sign: Literal["absolute", "signed"] = "absolute",
    rule: Literal["rescale", "gradient"] = "rescale",
) -> Importances:
    """What each token adds to the change of the output from a text of padding, by DeepLIFT or by the gradient alone.

    The rescale rule holds in every part of the model, recurrent layers and attention too, so that the signed scores of
    all tokens sum to the change. Rule `gradient` has the gradient at the text in its place. That is what Captum's
    DeepLIFT comes to on models that have no activation modules to which it could attach its rules, as those of Neely et
    al. 2022 have none, and so what they published as DeepLIFT.
    """
    rest = function, sign, target, baseline, texts, specials
    return explain_differences(evaluator, instances, rule, "no", *rest)


@measure(
    "deep-shap-published",
    equation="|½ Σ_{k ∈ {i, j}} (x_i - b)_t · ∂p_{c_k}/∂x_it with the masks of k|, j the partner of i",
    rule="gradient",
    mixed="texts-and-labels",
)
@measure("deep-shap", needs=["gradient"], equation="|m_t · (x - b)_t|, the mean over baselines b, which are all alike")
def deep_shap(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit"] = "probability",
    baseline: Literal["pad", "zero"] = "pad",
    texts: Literal["first", "both"] = "both",
    specials: bool = True,
    sign: Literal["absolute", "signed"] = "absolute",
    rule: Literal["rescale", "gradient"] = "rescale",
    mixed: Literal["no", "texts", "texts-and-labels"] = "no",
) -> Importances:
    """DeepLIFT averaged over baselines, which all are one text of padding, so that it is DeepLIFT.

    Not as published: Neely et al. 2022 explained two texts at a time with Captum 0.2.0, which by a fault ran each of
    them also with the masks (`texts`) and the class (`texts-and-labels`) of the other, and took the mean. Rule
    `gradient` is what DeepLIFT came to there.
    """
    rest = function, sign, target, baseline, texts, specials
    return explain_differences(evaluator, instances, rule, mixed, *rest)
