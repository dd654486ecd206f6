"""Rank correlation of two sets of importances of the same texts, text by text."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from plumbline.protocols.agreement.rank_statistics import FloatArray, kendall_tau, spearman


class TextCorrelations(NamedTuple):
    """Kendall's τ-b and Spearman's ρ of each text [N], NaN where there is a `reason` [N]."""

    kendall: FloatArray
    spearman: FloatArray
    reason: np.ndarray

    def columns(self) -> dict[str, np.ndarray]:
        """The columns of a score table."""
        return {**self._asdict(), "status": np.where(self.reason.astype(bool), "dropped", "ok")}


def correlate_texts(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> TextCorrelations:
    """The correlations of the importances `first[i]` and `second[i]` of every text i."""
    lengths = np.array([len(row) for row in first])
    kendall, rho = np.full((2, len(lengths)), np.nan)
    reason = np.full(len(lengths), None, dtype=object)
    for length in np.unique(lengths):
        index = np.flatnonzero(lengths == length)
        if length < 2:
            reason[index] = "fewer than two words"
            continue
        scores = np.array([[first[i], second[i]] for i in index.tolist()], dtype=np.float64)
        finite = np.isfinite(scores).all((1, 2))
        scores[~finite] = 0.0
        kendall[index], rho[index] = (correlate(scores)[0][:, 0, 1] for correlate in (kendall_tau, spearman))
        reason[index[(np.ptp(scores, axis=-1) == 0).any(1)]] = "constant importances"
        reason[index[~finite]] = "importances are not finite"
    return TextCorrelations(kendall, rho, reason)


def identical_texts(count: int) -> TextCorrelations:
    """The correlations of importances that are known to be the same in both sets."""
    return TextCorrelations(np.ones(count), np.ones(count), np.full(count, None, dtype=object))


def summarise_texts(scores: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Means over texts, by `keys`, of scores with the columns of `TextCorrelations`."""
    groups = scores.groupby(keys, observed=True, sort=True)
    summary = groups.agg(
        n=("kendall", "count"), total=("status", "size"), kendall=("kendall", "mean"), spearman=("spearman", "mean")
    )
    summary["kendall_std"] = groups["kendall"].std(ddof=0)
    summary["dropped"] = summary["total"] - summary["n"]
    summary["status"] = np.where(summary["n"] > 0, "ok", "undefined")
    summary["reason"] = summary["status"].map({"undefined": "no text could be ranked"})
    return summary.drop(columns="total").reset_index()
