"""Attention weights of trained models as a table, and the base model's columns that an adversary reads."""

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
def compute_attention(evaluator: Evaluator, instances: Instances) -> list[np.ndarray]:
    """The attention weights [K, words] of each instance."""
    weights: list[np.ndarray] = [np.empty(0)] * len(instances)

    def work(index: np.ndarray, batch: Batch) -> None:
        for i, heads in zip(index, heads_of(evaluator.model(batch)).cpu().numpy(), strict=True):
            maskable = instances.maskable[i]
            weights[i] = heads[:, : len(maskable)][:, maskable]

    evaluator.each(instances, work)
    return weights


def attention_columns(evaluators: Iterable[Evaluator], instances: Instances) -> dict[str, list[Any]]:
    """Columns of the table `attention`."""
    columns: dict[str, list[Any]] = {key: [] for key in ("seed", "split", "instance", "heads", "attention")}
    for evaluator in evaluators:
        weights = compute_attention(evaluator, instances)
        columns["seed"] += [evaluator.seed] * len(instances)
        columns["split"] += instances.split.tolist()
        columns["instance"] += instances.instance.tolist()
        columns["heads"] += [len(heads) for heads in weights]
        columns["attention"] += [heads.ravel() for heads in weights]
    return columns


def base_columns(
    attention: pa.Table, predictions: pa.Table, seed: int, splits: Mapping[str, Instances]
) -> dict[str, dict[str, Column]]:
    """The base model's columns of each split: `base_probabilities` [N, C] and `base_attention`, [tokens, K] for each
    instance, 0 at special tokens."""
    columns: dict[str, dict[str, Column]] = {}
    for split, instances in splits.items():
        stored, predicted = (_aligned(table, seed, split, instances) for table in (attention, predictions))
        base_attention = []
        for weights, heads, maskable in zip(
            ragged(stored["attention"]), stored["heads"].to_pylist(), instances.maskable, strict=True
        ):
            tokens = np.zeros((len(maskable), heads), dtype=np.float32)
            tokens[maskable] = weights.reshape(heads, -1).T
            base_attention.append(tokens)
        probabilities = np.stack(ragged(predicted["probabilities"]))
        columns[split] = {"base_attention": base_attention, "base_probabilities": probabilities}
    return columns


def _aligned(table: pa.Table, seed: int, split: str, instances: Instances) -> pa.Table:
    """The rows of a seed and split, in the order of the instances."""
    table = table.filter(pc.and_(pc.equal(table["seed"], seed), pc.equal(table["split"].cast(pa.string()), split)))
    rows = {number: row for row, number in enumerate(table["instance"].to_pylist())}
    return table.take(pa.array([rows[int(number)] for number in instances.instance], pa.int64()))
