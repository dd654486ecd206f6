"""Evidence on the scorecard: a truth where a rule determines it, plausibility where people marked it."""

import pandas as pd

from plumbline.protocols.criteria import VALUES, Measures
from plumbline.registry import criterion


@criterion("plausibility", faithfulness=False, source="human", order=95)
@criterion("evidence", table="evidence", direction="higher", range=[None, 1], order=65)
def evidence(table: pd.DataFrame, measures: Measures, *, source: str = "rule") -> pd.DataFrame:
    """AUPRC of the evidence relative to that of a random order."""
    rows = table[(table["source"] == source) & (table["status"] == "ok")]
    return rows.assign(value=rows["above_random"])[VALUES]
