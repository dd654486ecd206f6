"""Seed variance: how much does attention vary with the random seed alone? (Wiegreffe & Pinter 2019, section 3.3)"""

from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import torch

from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.distances import jensen_shannon, matched_mean, total_variation
from plumbline.models.evaluator import Evaluator
from plumbline.models.stored_attention import compute_attention
from plumbline.protocols.attention.bins import EVERY, quartiles, weight_bins
from plumbline.protocols.attention.schemas import SEED_VARIANCE, SEED_VARIANCE_SCORES
from plumbline.protocols.explained import Explained, instance_columns, join_columns
from plumbline.registry import protocol
from plumbline.store import TableSchema


@protocol(
    "seed_variance",
    needs=["attention or heads"],
    least_measures=0,
    least_seeds=2,
    gpu=True,
    equation="JSD(α_seed, α_base) and ¼ Σ_c |p_c,seed - p_c,base| for each text",
    cost="Two forward passes per text and seed; each seed is a model of its own.",
    misleads="High values are no fault of attention: other models may rightly attend to other words. It is a level "
    "for comparison: an adversary that diverges no more than another seed shows nothing.",
    citation="Wiegreffe & Pinter (2019), Attention is not not Explanation. EMNLP.",
    metrics=["jsd", "tvd"],
)
class SeedVariance:
    """How much attention and output differ between a base seed and each other seed of its block.

    Several heads have no order: those of the other seed are matched to the base seed's such that the sum of JSD over
    all texts is smallest, and JSD is the mean over the matched heads. The largest weight of a text is then that of the
    heads' mean.

    Options:
        base_seed: Seed that the others are compared with; -1 is the first one of the block.
    """

    table: ClassVar[TableSchema] = SEED_VARIANCE
    scores: ClassVar[TableSchema] = SEED_VARIANCE_SCORES

    def __init__(self, *, base_seed: int = -1) -> None:
        self.base_seed = base_seed

    def score(self, explained: Explained) -> dict[str, Any]:
        """Columns of the table `seed_variance_scores`: one row per other seed and instance."""
        base_seed = explained.seeds[0] if self.base_seed < 0 else self.base_seed
        if base_seed not in explained.seeds:
            raise PlumblineError(
                f"`base_seed` is {base_seed}, which is not one of the seeds of the block, {explained.seeds}."
            )
        instances = explained.instances()
        outputs = {evaluator.seed: self._outputs(evaluator, instances) for evaluator in explained.models()}
        base_attention, base_probabilities = outputs.pop(base_seed)
        base = {
            "base_seed": np.full(len(instances), base_seed),
            "max_attention": np.array([weights.mean(0).max() for weights in base_attention]),
        }
        parts = []
        for seed, (attention, probabilities) in outputs.items():
            pairs = torch.stack(
                [
                    jensen_shannon(torch.from_numpy(weights)[None], torch.from_numpy(base_weights)[:, None])
                    for weights, base_weights in zip(attention, base_attention, strict=True)
                ]
            )
            jsd = matched_mean(pairs, pairs.mean(0)).numpy()
            tvd = total_variation(torch.from_numpy(probabilities), torch.from_numpy(base_probabilities)).numpy() / 2
            columns = instance_columns(seed, instances, base_probabilities.argmax(1).astype(np.int32))
            parts.append(columns | base | {"jsd": np.maximum(jsd, 0), "tvd": tvd})
        return join_columns(parts)

    @staticmethod
    def _outputs(evaluator: Evaluator, instances: Instances) -> tuple[list[np.ndarray], np.ndarray]:
        """Attention [K, words] of each instance and class probabilities [N, C]; doubles, as differences are small."""
        weights = [heads.astype(np.float64) for heads in compute_attention(evaluator, instances)]
        return weights, evaluator.probabilities(instances).astype(np.float64)

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `seed_variance`: means and quartiles of each other seed, by the base's largest weight."""
        frame = scores.to_pandas()
        keys, parts = ["base_seed", "seed", "max_attention_bin"], []
        for bins in (EVERY, weight_bins(frame["max_attention"])):
            groups = frame.assign(max_attention_bin=bins).groupby(keys, observed=True, sort=True)
            means = {"n": groups.size(), "tvd_mean": groups["tvd"].mean(), "jsd_mean": groups["jsd"].mean()}
            parts.append(pd.DataFrame(means | quartiles(groups, "jsd")).reset_index())
        return pd.concat(parts, ignore_index=True).sort_values(keys, ignore_index=True).assign(status="ok", reason=None)
