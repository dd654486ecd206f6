"""Reliability: does a measure with random draws rank the words of a text alike when it draws again?"""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from plumbline.data.instances import Instances
from plumbline.models.block import predicted_classes
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.agreement.by_text import correlate_texts, identical_texts, summarise_texts
from plumbline.protocols.explained import Explained, instance_columns, join_columns
from plumbline.protocols.reliability.schemas import RELIABILITY, RELIABILITY_SCORES
from plumbline.protocols.sampled import SampledTexts
from plumbline.registry import protocol
from plumbline.store import TableSchema

# The distance between the draw seeds of two repetitions, so that none is a seed of the study.
DRAW_SEEDS = 2**32


@protocol(
    "reliability",
    variants="every",
    gpu=True,
    recomputes=True,
    equation="mean over texts and repetitions of τ_b(a, a with other draws)",
    cost="Per measure with random draws, 1 + `repeats` explanations of `texts` texts of each split.",
    misleads="It is not faithfulness: a constant ranking is perfectly reliable, and measures without draws have 1 by "
    "definition. It is low for texts with many words of nearly equal importance, whose order matters little.",
    citation="Spearman (1904), The Proof and Measurement of Association between Two Things. American Journal of "
    "Psychology.",
    metrics=["kendall", "spearman"],
    limits={"texts": [1, None], "repeats": [1, None]},
)
class Reliability:
    """Rank correlation of two runs of a measure on the same model, with different random draws (test and retest).

    Measures without draws have the reliability 1.

    Options:
        texts: Most texts of each split and seed that are explained; more are slower and less noisy.
        repeats: Further runs with other draws, each compared with the first.
    """

    table: ClassVar[TableSchema] = RELIABILITY
    scores: ClassVar[TableSchema] = RELIABILITY_SCORES

    def __init__(self, *, texts: int = 100, repeats: int = 1) -> None:
        self.texts, self.repeats = texts, repeats

    def score(self, explained: Explained) -> dict[str, Any]:
        """Columns of the table `reliability_scores`: one row per seed, measure, repetition and instance."""
        instances = explained.instances()
        parts = [part for evaluator in explained.models() for part in self._seed(explained, instances, evaluator)]
        return join_columns(parts)

    def _seed(
        self, explained: Explained, instances: Instances, evaluator: Evaluator
    ) -> Iterator[dict[str, np.ndarray]]:
        sample = SampledTexts.draw(explained, instances, evaluator.seed, self.texts)
        count = len(sample.positions)
        keys = instance_columns(evaluator.seed, sample.texts, predicted_classes(evaluator.probabilities(sample.texts)))
        drawing = [name for name, measure in explained.recomputed.items() if measure["stochastic"]]
        runs = [sample.compute(explained, _drawing_again(evaluator, i), drawing) for i in range(1 + self.repeats)]
        for measure in explained.importances:
            retests = [correlate_texts(runs[0][measure], again[measure]) for again in runs[1:] if measure in drawing]
            for i, correlations in enumerate(retests or [identical_texts(count)], start=1):
                constants = {"measure": measure, "stochastic": measure in drawing, "repetition": i}
                columns = {column: np.full(count, value) for column, value in constants.items()}
                yield {**keys, **columns, **correlations.columns()}

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `reliability`: means over texts and repetitions, by seed and measure."""
        return summarise_texts(scores.to_pandas(), ["seed", "measure", "stochastic"])


def _drawing_again(evaluator: Evaluator, repetition: int) -> Evaluator:
    """The same model with the seed of the draws of a repetition; the first, 0, has the model's own."""
    seed = evaluator.seed + repetition * DRAW_SEEDS
    return Evaluator(evaluator.model, seed, evaluator.budget, evaluator.device)
