"""AtteFa on the scorecard."""

import pandas as pd

from plumbline.protocols.adversary.table import scored
from plumbline.protocols.criteria import VALUES, Measures
from plumbline.registry import criterion


@criterion("AtteFa", table="adversary", direction="higher", range=[0, 1], measure="attention", order=40)
def attefa(table: pd.DataFrame, measures: Measures) -> pd.DataFrame:
    """AtteFa's score of attention, by the seeds of the adversaries."""
    rows = scored(table)
    return rows.assign(measure="attention", value=rows["attefa"])[VALUES]
