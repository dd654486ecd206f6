"""Permuted and adversarial attention on the scorecard; these criteria apply to attention alone."""

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
def replaced_attention(table: pd.DataFrame, measures: Measures, *, column: str = "median_change_mean") -> pd.DataFrame:
    """The mean change or divergence over all texts, for the largest epsilon."""
    overall = (table["predicted_class"] == "all") & (table["max_attention_bin"] == "all")
    rows = table[overall & (table["status"] == "ok")]
    if "epsilon" in rows:
        rows = rows[rows["epsilon"] == rows["epsilon"].max()]
    return rows.assign(measure="attention", value=rows[column])[VALUES]
