"""Randomised weights on the scorecard."""

import pandas as pd

from plumbline.protocols.criteria import KEYS, Measures
from plumbline.registry import criterion, metric


@metric(
    "weight_dependence",
    direction="higher",
    range=[0, 1],
    unit="correlation",
    equation="1 - (1/S) Σ_s |τ_s|, τ_s the mean over texts after the s-th of S cascading stages",
)
def weight_dependence(kendall: pd.Series) -> float:
    """1 minus the mean magnitude of τ over the cascading stages: 0 if importances ignore the weights."""
    return float(1 - kendall.abs().mean())


@criterion(
    "randomised weights",
    table="randomised_weights",
    direction="higher",
    range=[0, 1],
    faithfulness=False,
    order=90,
)
def randomised_weights(table: pd.DataFrame, measures: Measures) -> pd.DataFrame:
    """The dependence on the weights of all layers."""
    rows = table[(table["mode"] == "cascading") & (table["status"] == "ok")]
    values = rows.groupby([*KEYS, "seed"], observed=True)["kendall"].agg(weight_dependence)
    return values.rename("value").reset_index()
