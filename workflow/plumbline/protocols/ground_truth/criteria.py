"""Ground truth and rationales on the scorecard."""

import pandas as pd

from plumbline.protocols.criteria import VALUES, Measures
from plumbline.registry import criterion


def _truth(table: pd.DataFrame, column: str) -> pd.DataFrame:
    rows = table[table["truth"] & (table["class"] == "all") & (table["status"] == "ok")]
    return rows.assign(value=rows[column])[VALUES]


@criterion("ground truth", table="ground_truth", direction="higher", range=[None, 1], variants="manipulated", order=60)
def ground_truth(table: pd.DataFrame, measures: Measures) -> pd.DataFrame:
    """How much more importance a measure puts on the truth than chance would."""
    return _truth(table, "above_region")


@criterion("truth found", table="ground_truth", direction="higher", range=[0, 1], variants="manipulated", order=61)
def truth_found(table: pd.DataFrame, measures: Measures) -> pd.DataFrame:
    """How much of the truth is among as many top-ranked words, however large their scores are."""
    return _truth(table, "found")


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
