"""The measure my-measure. It works unchanged; replace it with your own method."""

import numpy as np

from plumbline.attribution.importances import Importances, empty_scores, per_word
from plumbline.data.instances import Instances
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


@measure(
    "my-measure",
    equation="|e_t|^p",
    # For readers, and optional, as is `citation`.
    cost="No pass through the model: only word vectors are read.",
    misleads="A word with a long vector need not have any influence on the output.",
)
def my_measure(evaluator: Evaluator, instances: Instances, *, power: float = 1.0) -> Importances:
    """The norm of a word's vector is its importance.

    Options:
        power: Exponent p of the norm; higher makes long vectors more important.
    """
    scores = empty_scores(instances)

    def work(index: np.ndarray, batch: Batch) -> None:
        norms = evaluator.model.embedding(batch.ids).norm(dim=-1)  # [B, L], including special tokens and padding
        per_word(norms**power, instances, index, into=scores)

    evaluator.each(instances, work)
    return Importances(scores)
