"""Where trained models look, as a table; and what an adversary reads of its base model."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from plumbline.data.instances import Instances, ragged
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.models.objectives import heads_of
from plumbline.models.rows import Column


@torch.no_grad()
def weights_of(evaluator: Evaluator, instances: Instances) -> list[np.ndarray]:
    """The weights [K, words] of each instance."""
    found: list[np.ndarray] = [np.empty(0)] * len(instances)

    def work(index: np.ndarray, batch: Batch) -> None:
        told = heads_of(evaluator.model(batch)).cpu().numpy()
        for row, i in enumerate(index):
            free = instances.maskable[i]
            found[i] = told[row][:, : len(free)][:, free]

    evaluator.each(instances, work)
    return found


def attention_columns(evaluators: Iterable[Evaluator], instances: Instances) -> dict[str, list[Any]]:
    """Columns of the table `attention`."""
    columns: dict[str, list[Any]] = {key: [] for key in ("seed", "split", "instance", "heads", "attention")}
    for evaluator in evaluators:
        found = weights_of(evaluator, instances)
        columns["seed"] += [evaluator.seed] * len(instances)
        columns["split"] += instances.split.tolist()
        columns["instance"] += instances.instance.tolist()
        columns["heads"] += [len(weights) for weights in found]
        columns["attention"] += [weights.ravel() for weights in found]
    return columns


def base_columns(
    attention: pa.Table, predictions: pa.Table, seed: int, splits: Mapping[str, Instances]
) -> dict[str, dict[str, Column]]:
    """What objectives read of a base model, split by split: `base_probabilities` [N, C] and `base_attention`, of each
    instance [tokens, K], with 0 for tokens that are no words."""
    columns: dict[str, dict[str, Column]] = {}
    for split, instances in splits.items():
        looks, says = (_of(table, seed, split) for table in (attention, predictions))
        place = {number: i for i, number in enumerate(looks["instance"].to_pylist())}
        order = [place[int(number)] for number in instances.instance]
        weights, heads = ragged(looks["attention"]), looks["heads"].to_pylist()
        spread = []
        for i, free in zip(order, instances.maskable, strict=True):
            tokens = np.zeros((len(free), heads[i]), dtype=np.float32)
            tokens[free] = weights[i].reshape(heads[i], -1).T
            spread.append(tokens)
        place = {number: i for i, number in enumerate(says["instance"].to_pylist())}
        told = np.stack(ragged(says["probabilities"]))[[place[int(number)] for number in instances.instance]]
        columns[split] = {"base_attention": spread, "base_probabilities": told}
    return columns


def _of(table: pa.Table, seed: int, split: str) -> pa.Table:
    return table.filter(pc.and_(pc.equal(table["seed"], seed), pc.equal(table["split"].cast(pa.string()), split)))
