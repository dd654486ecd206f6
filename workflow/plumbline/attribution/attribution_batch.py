"""Shared by the measures that replace the input vectors of a model: a batch to explain, and the loop over batches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from plumbline.attribution.explained_output import ExplainedOutput
from plumbline.attribution.importances import AttributionOptions, Importances, ScoreBuffer
from plumbline.attribution.inputs import baseline_vectors, feature_mask, forward_vectors, input_vectors, is_prompted
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch
from plumbline.models.budget import tokens_of
from plumbline.models.evaluator import Evaluator


@dataclass(frozen=True)
class AttributionBatch:
    """A batch and the output to explain in each row.

    index: [B] positions in the instances; features: [B, T] the tokens to score; vectors and baseline: [B, T, d], equal
    where a token is no feature, so that no perturbation changes it.
    """

    index: np.ndarray
    batch: Batch
    features: torch.Tensor
    vectors: torch.Tensor
    baseline: torch.Tensor
    output: ExplainedOutput

    def take(self, rows: torch.Tensor) -> "AttributionBatch":
        """Some of the rows [n]."""
        index, batch, output = self.index[rows.cpu().numpy()], self.batch.take(rows), self.output.take(rows)
        return AttributionBatch(index, batch, self.features[rows], self.vectors[rows], self.baseline[rows], output)

    def logits(self, model: Any, vectors: torch.Tensor) -> torch.Tensor:
        """The logits [n, B, C] of n copies of the rows, with these vectors [n, B, T, d] in place of their own."""
        copies = self.batch.repeat(len(vectors))
        return forward_vectors(model, copies, vectors.flatten(0, 1)).logits.unflatten(0, (len(vectors), -1))

    @torch.no_grad()
    def masked_outputs(self, model: Any, kept: torch.Tensor) -> torch.Tensor:
        """The explained outputs [n, B] with the baseline's vectors in place of the tokens that are not kept.

        kept: [n, B, T].
        """
        mixed = torch.where(kept[..., None], self.vectors, self.baseline)
        return self.output.value(self.logits(model, mixed).double())


def explain(
    evaluator: Evaluator,
    instances: Instances,
    score: Callable[[AttributionBatch], torch.Tensor],
    options: AttributionOptions,
    sign: Literal["absolute", "signed"] = "signed",
    copies: int = 1,
) -> Importances:
    """The scores [B, T] that `score` computes for each batch, of the tokens that are features.

    `copies` is the number of perturbed copies of each text. The words of a prompt are no features.
    """
    specials = options.specials and not is_prompted(evaluator.model)
    buffer = ScoreBuffer(instances, options.texts, specials)

    def work(index: np.ndarray, batch: Batch) -> None:
        with torch.no_grad():
            features = feature_mask(batch, options.texts, specials)
            vectors = input_vectors(evaluator.model, batch)
            baseline = baseline_vectors(evaluator.model, batch, options.baseline)
            baseline = torch.where(features[:, :, None], baseline, vectors)
            logits = forward_vectors(evaluator.model, batch, vectors).logits
            output = ExplainedOutput.of(options.target, options.function, logits, instances.label[index])
        values = score(AttributionBatch(index, batch, features, vectors, baseline, output))
        buffer.add(index, batch, values.abs() if sign == "absolute" else values, output.classes)

    evaluator.each(instances, work, copies)
    return buffer.importances()


def copies_per_pass(evaluator: Evaluator, batch: Batch) -> int:
    """How many copies of a batch fit into one pass."""
    return max(1, evaluator.budget.tokens // tokens_of(batch))


def require_positive(option: str, value: int) -> None:
    """Refuse a number of steps or samples below 1."""
    if value < 1:
        raise PlumblineError(f"`{option}` is {value}; it must be 1 or more.")
