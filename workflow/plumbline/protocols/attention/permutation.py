"""Permutation: does the output change when attention is permuted? (Jain & Wallace 2019, section 4.2.1)"""

from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import torch

from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch
from plumbline.models.distances import total_variation
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.attention.bins import by_class_and_bin, quartiles
from plumbline.protocols.attention.schemas import PERMUTATION, PERMUTATION_SCORES
from plumbline.protocols.explained import Explained, instance_columns, join_columns
from plumbline.registry import metric, protocol
from plumbline.store import TableSchema

# Permutations decoded at once: enough to be fast, few enough to need little memory compared with the hidden states.
CHUNK = 10


@protocol(
    "permutation",
    needs=["attention"],
    least_measures=0,
    gpu=True,
    equation="median over permutations π of ½ Σ_c |p_c(π α) - p_c(α)|",
    cost="One forward pass per text, then `permutations` passes from attention to output.",
    misleads="It is low where attention is nearly uniform, since permuting it changes nothing: read it by the "
    "largest weight. A high value shows that the output depends on where attention falls, not that attention ranks "
    "words correctly.",
    citation="Jain & Wallace (2019), Attention is not Explanation. NAACL.",
    metrics=["median_change"],
)
class Permutation:
    """The change in output when attention is permuted among the words and the hidden states stay fixed.

    Options:
        permutations: Random permutations per text; more are slower and make the median more exact.
    """

    table: ClassVar[TableSchema] = PERMUTATION
    scores: ClassVar[TableSchema] = PERMUTATION_SCORES

    def __init__(self, *, permutations: int = 100) -> None:
        if permutations < 1:
            raise PlumblineError(f"`permutations` is {permutations}; it must be 1 or more.")
        self.permutations = permutations

    def score(self, explained: Explained) -> dict[str, Any]:
        """Columns of the table `permutation_scores`: one row per seed and instance."""
        instances = explained.instances()
        parts = [self._seed(evaluator, instances) for evaluator in explained.models()]
        return join_columns(parts)

    def _seed(self, evaluator: Evaluator, instances: Instances) -> dict[str, np.ndarray]:
        change, largest, predicted = permute_attention(evaluator, instances, self.permutations)
        columns = instance_columns(evaluator.seed, instances, predicted)
        return columns | {"max_attention": largest, "median_change": median_change(change)}

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `permutation`: means and quartiles by predicted class and largest weight."""

        def summary(groups: Any) -> pd.DataFrame:
            change = groups["median_change"]
            columns = {"n": change.size(), "median_change_mean": change.mean()} | quartiles(groups, "median_change")
            return pd.DataFrame(columns).reset_index()

        return by_class_and_bin(scores.to_pandas(), ["seed"], summary)


@metric(
    "median_change",
    direction="higher",
    range=[0, 1],
    unit="distance",
    equation="median over permutations π of ½ Σ_c |p_c(π α) - p_c(α)|; 0 if the output ignores where attention falls",
)
def median_change(change: np.ndarray) -> np.ndarray:
    """The median change in output of each text, [N], from the change under each permutation, [N, permutations]."""
    return np.median(change, axis=1)


@torch.no_grad()
def permute_attention(
    evaluator: Evaluator, instances: Instances, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The change in output [N, count] under each permutation, the largest weight [N] and the predicted class [N]."""
    change = np.empty((len(instances), count))
    largest = np.empty(len(instances))
    predicted = np.empty(len(instances), dtype=np.int32)
    model = evaluator.model

    def work(index: np.ndarray, batch: Batch) -> None:
        encoded = model.encode(model.embedding(batch.ids), batch)
        attention = model.attend(encoded, batch)
        before = model.decode(encoded, attention).softmax(-1)
        orders = _orders(instances, index, batch.ids.shape[1], count, evaluator.seed)
        for start in range(0, count, CHUNK):
            order = torch.from_numpy(orders[start : start + CHUNK]).to(attention.device)
            permuted = attention.expand(len(order), -1, -1).gather(-1, order)
            after = model.decode(encoded, permuted).softmax(-1)
            change[index, start : start + CHUNK] = total_variation(after, before).T.cpu().numpy()
        largest[index] = attention.amax(-1).cpu().numpy()
        predicted[index] = before.argmax(-1).cpu().numpy()

    evaluator.each(instances, work)
    return change, largest, predicted


def _orders(instances: Instances, index: np.ndarray, width: int, count: int, seed: int) -> np.ndarray:
    """Permutations [count, B, width] of the words of each text; special tokens and padding stay in place."""
    orders = np.tile(np.arange(width), (count, len(index), 1))
    for row, i in enumerate(index):
        words = np.flatnonzero(instances.maskable[i])
        orders[:, row, words] = instances.generator(i, seed).permuted(np.tile(words, (count, 1)), axis=1)
    return orders
