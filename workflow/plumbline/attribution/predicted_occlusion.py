"""Occlusion with tokens that a language model predicts in place of the one that is replaced."""

from dataclasses import replace
from typing import Literal

import torch

from plumbline.attribution.attribution_batch import AttributionBatch, explain, require_positive
from plumbline.attribution.importances import AttributionOptions, Importances
from plumbline.attribution.inputs import vectors_of
from plumbline.attribution.occlusion import occluded_outputs
from plumbline.data.instances import Instances
from plumbline.models.batch import Batch
from plumbline.models.budget import tokens_of
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure

# The most logits that are in memory at a time, a quarter of a gigabyte.
LOGITS = 2**26


@measure(
    "occlusion-predicted",
    needs=["gradient", "next tokens"],
    equation="|Σ_j w_j (f(x) - f(x with v_j for x_t))|, v_1 … v_k: the tokens that the model finds likeliest after the "
    "tokens before t, w_j: their probabilities, scaled to sum 1",
    cost="As many forward passes per token of a text as there are replacements, and one per text to find them.",
    misleads="Replacements fit what precedes a word, not what follows. A word and its likely replacements may be "
    "evidence for the same class, which gives a low score. A fine-tuned model may predict mainly its answers.",
    citation=[
        "Harbecke & Alt (2020), Considering Likelihood in NLP Classification Explanations with Occlusion and Language "
        "Modeling. ACL Student Research Workshop.",
        "Zhao & Shan (2024), ReAGent: A Model-agnostic Feature Attribution Method for Generative Language Models. "
        "arXiv:2402.00794.",
    ],
)
def occlusion_predicted(
    evaluator: Evaluator,
    instances: Instances,
    *,
    replacements: int = 3,
    sign: Literal["absolute", "signed"] = "absolute",
    options: AttributionOptions = AttributionOptions(),
) -> Importances:
    """The mean drop of the output when a token is replaced by tokens that the language model itself predicts in its
    place, weighted by their probabilities, so that the text up to it stays plausible.

    A first token, before which there is none, is replaced by the baseline. ReAGent, in contrast, replaces random sets
    of tokens by the predictions of a second, masked language model.

    Options:
        replacements: Number of predicted tokens for each token, the likeliest ones; the token itself is not among them.
    """
    require_positive("replacements", replacements)

    def score(inputs: AttributionBatch) -> torch.Tensor:
        tokens, weights = _predicted(evaluator, inputs.batch, replacements)
        predicted = weights.sum(-1) > 0
        weights[..., 0].masked_fill_(~predicted, 1)
        replaced = (inputs.features & predicted)[..., None]
        numbers = (inputs.features.cumsum(1) - 1).clamp(min=0)
        drops = torch.zeros_like(weights[..., 0], dtype=torch.float64)
        for ids, share in zip(tokens.unbind(-1), weights.unbind(-1), strict=True):
            vectors = torch.where(replaced, vectors_of(evaluator.model, inputs.batch, ids), inputs.baseline)
            outputs = occluded_outputs(evaluator, replace(inputs, baseline=vectors), numbers)
            drops += (outputs[0] - outputs[1:]).T.gather(1, numbers) * share
        return drops

    return explain(evaluator, instances, score, options, sign)


def _predicted(evaluator: Evaluator, batch: Batch, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The tokens [B, T, k] that the model predicts in place of each one, and their weights [B, T, k]; a few rows at a
    time, because the logits of a whole vocabulary are large."""
    logits = tokens_of(batch) * len(evaluator.model.embedding.weight)
    rows = max(1, LOGITS * len(batch.ids) // logits)
    parts = torch.arange(len(batch.ids), device=batch.ids.device).split(rows)
    found = [evaluator.model.next_tokens(batch.take(part), count) for part in parts]
    ids, weights = zip(*found, strict=True)
    return torch.cat(ids), torch.cat(weights)
