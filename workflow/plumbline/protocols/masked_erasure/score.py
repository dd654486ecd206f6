"""Masked erasure: how much performance falls when important words are masked, for models trained with masked words.

Such texts are in the training distribution, so that models need not be retrained (Madsen et al. 2024).
"""

from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from plumbline.data.instances import Instances
from plumbline.data.masking import apply_masks, masks_at, uniform_masks
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.models.representation import represent
from plumbline.protocols.explained import Explained, instance_columns, join_columns, list_column
from plumbline.protocols.masked_erasure.conformal import FloatArray, Reference, out_of_distribution
from plumbline.protocols.masked_erasure.schemas import MASKED_ERASURE, MASKED_ERASURE_SCORES
from plumbline.protocols.roar.table import EVERYTHING
from plumbline.registry import protocol
from plumbline.runtime.progress import shown
from plumbline.store import TableSchema
from plumbline.training.performance import accuracy, macro_f1

FEW_TEXTS = "the dev split has too few texts to calibrate p-values"


@protocol(
    "masked_erasure",
    needs=["masked training"],
    pixels=False,
    least_measures=2,
    gpu=True,
    recomputes=True,
    equation="performance with the top k % of all words masked",
    cost="One model trained with masks for all measures; per measure and level one forward pass per text and, with "
    "`recompute`, one explanation of it.",
    misleads="It judges the model trained with masks, not the ordinary one. A curve may fall because texts are "
    "unusual: compare `out_of_distribution` with that of `random`. Without `recompute`, redundant words hide each "
    "other.",
    citation=[
        "Madsen, Reddy & Chandar (2024), Faithfulness Measurable Masked Language Models. ICML.",
        "Haroush, Frostig, Heller & Soudry (2022), A Statistical Framework for Efficient Out of Distribution "
        "Detection in Deep Neural Networks. ICLR.",
    ],
    metrics=["faithfulness", "accuracy", "macro_f1", "out_of_distribution"],
)
class MaskedErasure:
    """Performance of models trained with masked words when the most important words are masked, level by level.

    Masked words stay masked. Texts of the test split are scored, or all explained ones if it is not explained.

    Options:
        levels: Percentages of a text's words that are masked; everything masked is added.
        recompute: Whether the next words are chosen by new scores of the text masked so far; imported scores never are
            new.
    """

    table: ClassVar[TableSchema] = MASKED_ERASURE
    scores: ClassVar[TableSchema] = MASKED_ERASURE_SCORES

    def __init__(
        self,
        *,
        levels: list[int] = [10, 20, 30, 40, 50, 60, 70, 80, 90],  # noqa: B006
        recompute: bool = True,
    ) -> None:
        if not levels or not all(0 < level < EVERYTHING for level in levels) or sorted(set(levels)) != levels:
            raise PlumblineError(f"`levels` is {levels}; write distinct percentages between 0 and 100, ascending.")
        self.levels, self.recompute = levels, recompute
        self._curve_levels = (0, *levels, EVERYTHING)

    def score(self, explained: Explained) -> dict[str, Any]:
        """Columns of the table `masked_erasure_scores`: one row per seed, measure and instance."""
        instances, dev = explained.instances(), explained.instances(["dev"])
        parts: list[dict[str, np.ndarray]] = []
        for explanations, evaluator in zip(explained.by_seed(), explained.models(), strict=True):
            texts = instances.at(explanations.keys)
            reference = training_reference(evaluator, dev, explained.mask_id)
            for measure, scores in shown(explanations.scores.items(), f"seed {evaluator.seed}", "measure"):
                parts.append(self._curve(explained, evaluator, texts, measure, scores, reference))
        return join_columns(parts)

    def _curve(
        self,
        explained: Explained,
        evaluator: Evaluator,
        texts: Instances,
        measure: str,
        scores: list[np.ndarray],
        reference: Reference,
    ) -> dict[str, np.ndarray]:
        """The rows of a measure for one seed."""
        scored = np.flatnonzero((texts.split == "test") | ("test" not in explained.splits))
        ties, masks = texts.ties(evaluator.seed), None
        predicted, p_values = [], []
        for level in self._curve_levels:
            masks = masks_at(level, "relative", scores, ties, masks)
            masked = apply_masks(texts, masks, explained.mask_id)
            classes, features = read_texts(evaluator, masked.take(scored))
            predicted.append(classes)
            p_values.append(reference.p_values(features))
            if self.recompute and measure in explained.recomputed and level in self.levels[:-1]:
                scores = explained.compute(evaluator, masked, [measure])[measure]
        return {
            **instance_columns(evaluator.seed, texts.take(scored), predicted[0]),
            "label": texts.label[scored],
            "measure": np.full(len(scored), measure, dtype=object),
            "predicted_at": list_column(np.stack(predicted, axis=1)),
            "p_value_at": list_column(np.stack(p_values, axis=1)),
        }

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `masked_erasure`: one per seed, measure, level and metric."""
        rows = []
        for (seed, measure), group in scores.to_pandas().groupby(["seed", "measure"], sort=True, observed=True):
            labels = group["label"].to_numpy()
            by_level = (np.stack(group[column].to_numpy()).T for column in ("predicted_at", "p_value_at"))
            for level, predicted, p_values in zip(self._curve_levels, *by_level, strict=True):
                certain = np.eye(predicted.max() + 1)[predicted]
                metrics = {"accuracy": accuracy(certain, labels), "macro_f1": macro_f1(certain, labels)}
                metrics["out_of_distribution"] = out_of_distribution(p_values)
                for metric, value in metrics.items():
                    reason = FEW_TEXTS if np.isnan(value) else None
                    rows.append(
                        {"seed": seed, "measure": measure, "level": level, "metric": metric, "value": value}
                        | {"n": len(labels), "status": "undefined" if reason else "ok", "reason": reason}
                    )
        return pd.DataFrame(rows)


def training_reference(evaluator: Evaluator, texts: Instances, mask_id: int) -> Reference:
    """The reference of texts that are masked as in training: half of them, a uniform share of the words."""
    random = np.random.default_rng(evaluator.seed)
    features = read_texts(evaluator, masked_as_in_training(texts, mask_id, random))[1]
    return Reference(features, random)


def masked_as_in_training(texts: Instances, mask_id: int, random: np.random.Generator) -> Instances:
    """A random half of the texts with a uniform share of their words masked, and the others."""
    words = np.array([int(free.sum()) for free in texts.maskable])
    masks = uniform_masks(words, random.permutation(len(texts)) < len(texts) // 2, random)
    return apply_masks(texts, np.split(masks, np.cumsum(words)[:-1]), mask_id)


def read_texts(evaluator: Evaluator, texts: Instances) -> tuple[np.ndarray, FloatArray]:
    """The predicted class [N] and the final representation [N, H] of texts."""
    predicted = np.empty(len(texts), dtype=np.int32)
    features: list[np.ndarray] = [np.empty(0)] * len(texts)

    def work(index: np.ndarray, batch: Batch) -> None:
        logits, representation = represent(evaluator.model, batch)
        predicted[index] = logits.argmax(1).cpu().numpy()
        for i, row in zip(index, representation.double().cpu().numpy(), strict=True):
            features[i] = row

    evaluator.each(texts, work)
    return predicted, np.stack(features)
