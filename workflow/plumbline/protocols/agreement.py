"""Agreement: do two measures rank the words of a text alike? (Jain & Wallace 2019, section 4.1; Neely et al. 2022)"""

from collections.abc import Iterator
from itertools import combinations
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from plumbline.errors import PlumblineError
from plumbline.protocols import rank_statistics
from plumbline.protocols.explained import Explained, Explanations
from plumbline.registry import protocol

SIGNIFICANT = 0.05


@protocol("agreement", reads=["importances"], equation="mean over instances of τ_b(a, b)")
class Agreement:
    """Rank correlation of every pair of measures on every instance."""

    table: ClassVar[str] = "agreement"

    def __init__(
        self,
        *,
        statistics: list[Literal["kendall", "spearman", "pearson", "top-k-jain-wallace", "top-k-fagin"]] = ["kendall"],  # noqa: B006
        top_k_share: float = 0.1,
        top_k_minimum: int = 10,
    ) -> None:
        self.statistics = statistics
        self.top_k_share = top_k_share
        self.top_k_minimum = top_k_minimum

    def score(self, explained: Explained) -> dict[str, Any]:
        """Columns of the table `scores`: one row per seed, instance, pair of measures and statistic."""
        frames = [frame for explanations in explained.by_seed() for frame in self._seed(explanations)]
        if not frames:
            raise PlumblineError("Agreement needs at least two measures and one instance.")
        whole = pd.concat(frames, ignore_index=True).sort_values(
            ["seed", "split", "instance", "measure_a", "measure_b", "statistic"], kind="stable"
        )
        return {str(column): whole[column] for column in whole}

    def _seed(self, explanations: Explanations) -> Iterator[pd.DataFrame]:
        measures = sorted(explanations.scores)
        lengths = np.array([len(scores) for scores in explanations.scores[measures[0]]])
        for measure in measures:
            if not np.array_equal(lengths, [len(scores) for scores in explanations.scores[measure]]):
                raise PlumblineError(f"Measure '{measure}' does not have as many scores per instance as '{measures[0]}'.")
        # The study takes one k per dataset, from its mean length.
        k = max(self.top_k_minimum, int(self.top_k_share * lengths.mean()))
        for length in np.unique(lengths):
            index = np.flatnonzero(lengths == length)
            scores = np.stack(
                [[explanations.scores[measure][i].astype(np.float64) for measure in measures] for i in index]
            )
            yield from self._equal_length(explanations, index, scores, measures, k)

    def _equal_length(
        self, explanations: Explanations, index: np.ndarray, scores: np.ndarray, measures: list[str], k: int
    ) -> Iterator[pd.DataFrame]:
        """Rows of instances of one length. scores: [B, M, n]."""
        finite = np.isfinite(scores).all(-1)
        constant = (scores == scores[..., :1]).all(-1)
        usable = np.where(finite[..., None], scores, 0.0)
        length = scores.shape[-1]
        for statistic in self.statistics:
            value, p_value = evaluate(statistic, usable, k)
            for a, b in combinations(range(len(measures)), 2):
                reason = np.full(len(index), "", dtype=object)
                if statistic in ("kendall", "spearman", "pearson"):
                    reason[constant[:, a] | constant[:, b]] = "constant importances"
                reason[~(finite[:, a] & finite[:, b])] = "importances are not finite"
                if length < 2:
                    reason[:] = "fewer than two words"
                dropped = reason != ""
                yield pd.DataFrame(
                    {
                        "seed": explanations.seed,
                        "split": explanations.split[index],
                        "instance": explanations.instance[index],
                        "predicted_class": explanations.predicted_class[index],
                        "measure_a": measures[a],
                        "measure_b": measures[b],
                        "statistic": statistic,
                        "value": np.where(dropped, np.nan, value[:, a, b]),
                        "p_value": np.where(dropped, np.nan, p_value[:, a, b]),
                        "length": length,
                        "status": np.where(dropped, "dropped", "ok"),
                        "reason": np.where(dropped, reason, None),
                    }
                )

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `agreement`: means by predicted class, and over all, of each pair and statistic."""
        frame = scores.to_pandas()
        classes = frame["predicted_class"].nunique()
        everything = frame.assign(predicted_class="all")
        # Above three classes the study reports only the whole.
        groups = [everything] if classes > 3 else [frame.assign(predicted_class=frame["predicted_class"].astype(str)), everything]
        keys = ["seed", "measure_a", "measure_b", "statistic", "predicted_class"]
        return pd.concat(
            [_summary(group.groupby(keys, observed=True, sort=True)) for group in groups], ignore_index=True
        ).sort_values(keys, ignore_index=True)


def evaluate(statistic: str, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """A statistic of all pairs of measures, and its p value (NaN where it has none). scores: [B, M, n]."""
    if statistic.startswith("top-k"):
        distance = {
            "top-k-jain-wallace": rank_statistics.top_k_kendall_jain_wallace,
            "top-k-fagin": rank_statistics.top_k_kendall_fagin,
        }[statistic](scores, k)
        return distance, np.full_like(distance, np.nan)
    correlation = {
        "kendall": rank_statistics.kendall_tau,
        "spearman": rank_statistics.spearman,
        "pearson": rank_statistics.pearson,
    }[statistic]
    return correlation(scores)


def _summary(groups: Any) -> pd.DataFrame:
    summary = groups.agg(
        n=("value", "count"), total=("status", "size"), mean=("value", "mean"), tested=("p_value", "count")
    )
    # Population spread, as Jain & Wallace report it.
    summary["std"] = groups["value"].std(ddof=0)
    significant = groups["p_value"].agg(lambda p: float((p <= SIGNIFICANT).sum()))
    summary["significant_fraction"] = (significant / summary["tested"]).where(summary["tested"] > 0)
    summary["dropped"] = summary["total"] - summary["n"]
    summary["status"] = np.where(summary["n"] > 0, "ok", "undefined")
    summary["reason"] = np.where(summary["n"] > 0, None, "no instance could be ranked")
    return summary.drop(columns=["total", "tested"]).reset_index()
