"""Reliability on the scorecard."""

import pandas as pd

from plumbline.protocols.criteria import VALUES, Measures
from plumbline.registry import criterion


@criterion(
    "reliability",
    table="reliability",
    direction="higher",
    range=[-1, 1],
    variants="every",
    faithfulness=False,
    order=200,
)
def reliability(table: pd.DataFrame, measures: Measures) -> pd.DataFrame:
    """Test-retest τ: how little a measure's ranking depends on its random draws."""
    return table[table["status"] == "ok"].rename(columns={"kendall": "value"})[VALUES]
