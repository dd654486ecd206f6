"""Texts before and after erasure: the output of the predicted class, with words deleted or replaced."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch

from plumbline.attribution.inputs import Baseline, baseline_vectors, forward_vectors, input_vectors
from plumbline.data.instances import Instances, Texts
from plumbline.data.masking import apply_masks
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.erasure.metrics import FloatArray

Removal = Literal["delete", "mask", "pad", "zero"]


class WholeTexts(NamedTuple):
    """Texts before erasure with the predicted class [N] and its probability [N], and how their words are erased."""

    evaluator: Evaluator
    instances: Instances
    predicted: np.ndarray
    output: FloatArray
    removal: Removal
    mask_id: int

    def take(self, index: Sequence[int] | np.ndarray) -> "WholeTexts":
        """The texts at these positions, in this order."""
        predicted, output = self.predicted[index], self.output[index]
        return self._replace(instances=self.instances.take(index), predicted=predicted, output=output)

    def without(self, erased: Sequence[np.ndarray]) -> FloatArray:
        """The output [N] without the words flagged in `erased`."""
        after = probabilities_without(self.evaluator, self.instances, erased, self.removal, self.mask_id)
        return class_probability(after, self.predicted)


def whole_texts(evaluator: Evaluator, instances: Instances, removal: Removal, mask_id: int) -> WholeTexts:
    """The texts with what a model predicts for them."""
    probabilities = evaluator.probabilities(instances)
    predicted = probabilities.argmax(1).astype(np.int32)
    return WholeTexts(evaluator, instances, predicted, class_probability(probabilities, predicted), removal, mask_id)


def probabilities_without(
    evaluator: Evaluator, texts: Instances, erased: Sequence[np.ndarray], removal: Removal, mask_id: int
) -> np.ndarray:
    """Class probabilities [N, C] of texts without the words flagged in `erased`; `mask_id` is that of the mask."""
    if removal == "mask":
        return evaluator.probabilities(apply_masks(texts, erased, mask_id))
    kept = [np.ones(len(free), dtype=bool) for free in texts.maskable]
    for keep, free, flags in zip(kept, texts.maskable, erased, strict=True):
        keep[free] = ~flags
    if removal == "delete":
        ids, maskable = (
            [row[keep] for row, keep in zip(column, kept, strict=True)] for column in (texts.ids, texts.maskable)
        )
        return evaluator.probabilities(Texts(ids, maskable, texts.pair, texts.answers, texts.pair_maskable))
    return _probabilities_replaced(evaluator, texts, kept, removal)


def _probabilities_replaced(
    evaluator: Evaluator, texts: Instances, kept: Sequence[np.ndarray], baseline: Baseline
) -> np.ndarray:
    """Class probabilities [N, C] with the vectors of all tokens that are not `kept` replaced by a baseline's."""
    probabilities: list[np.ndarray] = [np.empty(0)] * len(texts)

    def work(index: np.ndarray, batch: Batch) -> None:
        with torch.no_grad():
            vectors, nothing = input_vectors(evaluator.model, batch), baseline_vectors(evaluator.model, batch, baseline)
            keep = torch.ones(vectors.shape[:2], dtype=torch.bool)
            for row, i in enumerate(index):
                keep[row, : len(kept[i])] = torch.from_numpy(kept[i])
            replaced = torch.where(keep.to(vectors.device)[..., None], vectors, nothing)
            output = forward_vectors(evaluator.model, batch, replaced).logits.softmax(-1).float().cpu().numpy()
        for row, i in enumerate(index):
            probabilities[i] = output[row]

    evaluator.each(texts, work)
    return np.stack(probabilities)


def class_probability(probabilities: np.ndarray, classes: np.ndarray) -> FloatArray:
    """The probability [N] of a class of each row of probabilities [N, C]."""
    return probabilities[np.arange(len(classes)), classes].astype(np.float64)
