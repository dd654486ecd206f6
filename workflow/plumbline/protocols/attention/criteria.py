"""Replaced attention on the scorecard; these criteria are about attention alone."""

import pandas as pd

from plumbline.protocols.criteria import VALUES, Measures
from plumbline.registry import criterion


@criterion(
    "adversarial attention",
    table="adversarial_attention",
    direction="lower",
    range=[0, 0.6931471805599453],
    column="jsd_mean",
    order=30,
)
@criterion("permutation", table="permutation", direction="higher", range=[0, 1], measure="attention", order=20)
def replaced(table: pd.DataFrame, measures: Measures, *, column: str = "median_change_mean") -> pd.DataFrame:
    """A number about attention over all texts; of several epsilons that of the largest."""
    here = (table["predicted_class"] == "all") & (table["max_attention_bin"] == "all") & (table["status"] == "ok")
    rows = table[here]
    if "epsilon" in rows:
        rows = rows[rows["epsilon"] == rows["epsilon"].max()]
    return rows.assign(measure="attention", value=rows[column])[VALUES]
