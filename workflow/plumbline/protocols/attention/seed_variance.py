"""Seed variance: how far does chance alone move attention? (Wiegreffe & Pinter 2019, section 3.3)"""

from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import torch

from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.distances import jensen_shannon, total_variation
from plumbline.models.evaluator import Evaluator
from plumbline.models.weights import compute_attention
from plumbline.protocols.attention.bins import EVERY, bin_of, quartiles
from plumbline.protocols.attention.schemas import SEED_VARIANCE, SEED_VARIANCE_SCORES
from plumbline.protocols.explained import Explained, instance_columns
from plumbline.registry import protocol
from plumbline.store import TableSchema


@protocol(
    "seed_variance",
    needs=["attention"],
    least_measures=0,
    least_seeds=2,
    gpu=True,
    equation="JSD(α_seed, α_base) and ¼ Σ_c |p_c,seed - p_c,base|, text by text",
)
class SeedVariance:
    """How much attention and output differ between a base seed and each other seed of its block.

    `base_seed` is -1 for the first seed of the block.
    """

    table: ClassVar[TableSchema] = SEED_VARIANCE
    scores: ClassVar[TableSchema] = SEED_VARIANCE_SCORES

    def __init__(self, *, base_seed: int = -1) -> None:
        self.base_seed = base_seed

    def score(self, explained: Explained) -> dict[str, Any]:
        """Columns of the table `seed_variance_scores`: one row per other seed and instance."""
        base_seed = explained.seeds[0] if self.base_seed < 0 else self.base_seed
        if base_seed not in explained.seeds:
            raise PlumblineError(f"`base_seed` is {base_seed}, which is none of the block's seeds {explained.seeds}.")
        instances = explained.instances()
        found = {evaluator.seed: self._outputs(evaluator, instances) for evaluator in explained.models()}
        attention, probabilities = found[base_seed]
        base = {
            "base_seed": np.full(len(instances), base_seed),
            "max_attention": np.array([weights.max() for weights in attention]),
        }
        parts = []
        for seed, (others, told) in found.items():
            if seed != base_seed:
                jsd = [
                    jensen_shannon(torch.from_numpy(a), torch.from_numpy(b)).item()
                    for a, b in zip(others, attention, strict=True)
                ]
                tvd = total_variation(torch.from_numpy(told), torch.from_numpy(probabilities)).numpy() / 2
                columns = instance_columns(seed, instances, probabilities.argmax(1).astype(np.int32))
                parts.append(columns | base | {"jsd": np.maximum(jsd, 0), "tvd": tvd})
        return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}

    @staticmethod
    def _outputs(evaluator: Evaluator, instances: Instances) -> tuple[list[np.ndarray], np.ndarray]:
        """Attention of each instance, and class probabilities [N, C]; doubles, since the differences may be small."""
        weights = [heads[0].astype(np.float64) for heads in compute_attention(evaluator, instances)]
        return weights, evaluator.probabilities(instances).astype(np.float64)

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `seed_variance`: means and quartiles of each other seed, by the base's largest weight."""
        frame = scores.to_pandas()
        frame = frame.assign(max_attention_bin=bin_of(frame["max_attention"]))
        keys, parts = ["base_seed", "seed", "max_attention_bin"], []
        for told in (frame.assign(max_attention_bin=EVERY), frame):
            groups = told.groupby(keys, observed=True, sort=True)
            means = {"n": groups.size(), "tvd_mean": groups["tvd"].mean(), "jsd_mean": groups["jsd"].mean()}
            parts.append(pd.DataFrame(means | quartiles(groups, "jsd")).reset_index())
        return pd.concat(parts, ignore_index=True).sort_values(keys, ignore_index=True).assign(status="ok", reason=None)
