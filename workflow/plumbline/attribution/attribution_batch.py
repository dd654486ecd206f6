"""Shared by the measures that replace the input vectors of a model: a batch to explain, and the loop over batches."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch

from plumbline.attribution.importances import (
    AttributionOptions,
    Function,
    Importances,
    ScoreBuffer,
    explained_output,
    target_classes,
)
from plumbline.attribution.inputs import baseline_vectors, feature_mask, forward_vectors, input_vectors
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch
from plumbline.models.budget import tokens_of
from plumbline.models.evaluator import Evaluator


@dataclass(frozen=True)
class AttributionBatch:
    """A batch and the target class of each row.

    index: [B] positions in the instances; features: [B, T] the tokens to score; vectors and baseline: [B, T, d], equal
    where a token is no feature, so that no perturbation changes it; classes: [B]; function: the output to explain.
    """

    index: np.ndarray
    batch: Batch
    features: torch.Tensor
    vectors: torch.Tensor
    baseline: torch.Tensor
    classes: torch.Tensor
    function: Function

    def take(self, rows: torch.Tensor) -> "AttributionBatch":
        """Some of the rows [n]."""
        tensors = {name: getattr(self, name)[rows] for name in ("features", "vectors", "baseline", "classes")}
        return replace(self, index=self.index[rows.cpu().numpy()], batch=self.batch.take(rows), **tensors)

    @torch.no_grad()
    def masked_outputs(self, model: Any, kept: torch.Tensor) -> torch.Tensor:
        """The explained outputs [n, B] with the baseline's vectors in place of the tokens that are not kept.

        kept: [n, B, T]. A class that cannot be the answer has no logit whatever is kept; its output is 0.
        """
        mixed = torch.where(kept[..., None], self.vectors, self.baseline).flatten(0, 1)
        logits = forward_vectors(model, self.batch.repeat(len(kept)), mixed).logits
        outputs = explained_output(logits.double(), self.classes.repeat(len(kept)), self.function)
        return outputs.masked_fill(outputs.isneginf(), 0).view(len(kept), -1)


def explain(
    evaluator: Evaluator,
    instances: Instances,
    score: Callable[[AttributionBatch], torch.Tensor],
    options: AttributionOptions,
    sign: Literal["absolute", "signed"] = "signed",
) -> Importances:
    """The scores [B, T] that `score` computes for each batch, of the tokens that are features."""
    buffer = ScoreBuffer(instances, options.texts, options.specials)

    def work(index: np.ndarray, batch: Batch) -> None:
        with torch.no_grad():
            features = feature_mask(batch, options.texts, options.specials)
            vectors = input_vectors(evaluator.model, batch)
            baseline = baseline_vectors(evaluator.model, batch, options.baseline)
            baseline = torch.where(features[:, :, None], baseline, vectors)
            logits = forward_vectors(evaluator.model, batch, vectors).logits
            classes = target_classes(options.target, logits, instances.label[index])
        values = score(AttributionBatch(index, batch, features, vectors, baseline, classes, options.function))
        buffer.add(index, batch, values.abs() if sign == "absolute" else values, classes)

    evaluator.each(instances, work)
    return buffer.importances()


def copies_per_pass(evaluator: Evaluator, batch: Batch) -> int:
    """How many copies of a batch fit into one pass."""
    return max(1, evaluator.budget.tokens // tokens_of(batch))


def require_positive(option: str, value: int) -> None:
    """Refuse a number of steps or samples below 1."""
    if value < 1:
        raise PlumblineError(f"`{option}` is {value}; it must be 1 or more.")
