"""Ground truth and rationales on the scorecard."""

import pandas as pd

from plumbline.protocols.criteria import VALUES, Measures
from plumbline.registry import criterion


@criterion("ground truth", table="ground_truth", direction="higher", range=[None, 1], variants="manipulated", order=60)
def ground_truth(table: pd.DataFrame, measures: Measures) -> pd.DataFrame:
    """How much more importance a measure puts on the truth than chance would."""
    rows = table[table["truth"] & (table["class"] == "all") & (table["status"] == "ok")]
    return rows.assign(value=rows["above_region"])[VALUES]


@criterion(
    "rationale precision",
    table="rationales",
    direction="higher",
    range=[0, 1],
    variants="manipulated",
    measure="selection",
    order=70,
)
def rationale_precision(table: pd.DataFrame, measures: Measures) -> pd.DataFrame:
    """The share of the selected words that determine the label."""
    rows = table[table["status"] == "ok"]
    return rows.assign(measure="selection", value=rows["precision"])[VALUES]
