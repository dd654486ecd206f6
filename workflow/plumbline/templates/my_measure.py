"""The measure my-measure. It works as it is; put your own method in its place."""

import numpy as np

from plumbline.attribution.importances import Importances, empty_scores, per_word
from plumbline.data.instances import Instances
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


@measure("my-measure", equation="|e_t|^p")
def my_measure(evaluator: Evaluator, instances: Instances, *, power: float = 1.0) -> Importances:
    """The longer a word's vector, the more it counts."""
    scores = empty_scores(instances)

    def work(index: np.ndarray, batch: Batch) -> None:
        lengths = evaluator.model.embedding(batch.ids).norm(dim=-1)  # [B, L], special tokens and padding too
        per_word(lengths**power, instances, index, into=scores)

    evaluator.each(instances, work)
    return Importances(scores)
