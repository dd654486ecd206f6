"""What the measures that put other vectors in place of a text's own have in common: what they ask of a batch."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from plumbline.attribution.importances import (
    Function,
    Importances,
    ScoreBuffer,
    Target,
    explained_output,
    target_classes,
)
from plumbline.attribution.inputs import Baseline, Explained, baseline_of, features, input_vectors, read
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch
from plumbline.models.budget import tokens_of
from plumbline.models.evaluator import Evaluator


@dataclass(frozen=True)
class AttributionBatch:
    """Rows of which a class each is to be explained.

    index: [B] their positions among the instances; free: [B, T] the tokens that are features; vectors and baseline:
    [B, T, d], the same for all other tokens, so that nothing that is done moves these; classes: [B].
    """

    index: np.ndarray
    batch: Batch
    free: torch.Tensor
    vectors: torch.Tensor
    baseline: torch.Tensor
    classes: torch.Tensor

    def take(self, rows: torch.Tensor) -> "AttributionBatch":
        """The question about some of the rows [n]."""
        return AttributionBatch(
            self.index[rows.cpu().numpy()],
            self.batch.take(rows),
            self.free[rows],
            self.vectors[rows],
            self.baseline[rows],
            self.classes[rows],
        )


def explain(
    evaluator: Evaluator,
    instances: Instances,
    answer: Callable[[AttributionBatch], torch.Tensor],
    target: Target,
    baseline: Baseline,
    texts: Explained,
    specials: bool,
) -> Importances:
    """The scores [B, T] that `answer` gives to the tokens of each batch, of which those of features are told."""
    gathered = ScoreBuffer(instances, texts, specials)

    def work(index: np.ndarray, batch: Batch) -> None:
        with torch.no_grad():
            free, vectors = features(batch, texts, specials), input_vectors(evaluator.model, batch)
            nothing = torch.where(free[:, :, None], baseline_of(evaluator.model, batch, baseline), vectors)
            classes = target_classes(target, read(evaluator.model, batch, vectors).logits, instances.label[index])
        values = answer(AttributionBatch(index, batch, free, vectors, nothing, classes))
        gathered.add(index, batch, values, classes)

    evaluator.each(instances, work)
    return gathered.importances()


def copies(evaluator: Evaluator, batch: Batch) -> int:
    """How often all rows of a batch fit into one pass."""
    return max(1, evaluator.budget.tokens // tokens_of(batch))


@torch.no_grad()
def outputs_with(
    evaluator: Evaluator, question: AttributionBatch, kept: torch.Tensor, function: Function
) -> torch.Tensor:
    """The explained outputs [n, B] if only these tokens keep their vectors, and others have the baseline's.

    kept: [n, B, T]. A class that cannot be the answer has no logit whatever is kept; its output is 0.
    """
    mixed = torch.where(kept[..., None], question.vectors, question.baseline).flatten(0, 1)
    logits = read(evaluator.model, question.batch.repeat(len(kept)), mixed).logits
    outputs = explained_output(logits.double(), question.classes.repeat(len(kept)), function)
    return outputs.masked_fill(outputs.isneginf(), 0).view(len(kept), -1)


def at_least_one(option: str, value: int) -> None:
    """Refuse a number of steps or samples that is none."""
    if value < 1:
        raise PlumblineError(f"`{option}` is {value}; it must be 1 or more.")
