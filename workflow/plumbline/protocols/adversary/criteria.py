"""AtteFa on the scorecard."""

import pandas as pd

from plumbline.protocols.adversary.table import attefa_rows
from plumbline.protocols.criteria import VALUES, Measures
from plumbline.registry import criterion


@criterion("AtteFa", table="adversary", direction="higher", range=[0, 1], measure="attention", order=40)
def attefa(table: pd.DataFrame, measures: Measures) -> pd.DataFrame:
    """The AtteFa score of attention, one value per seed of the adversary."""
    rows = attefa_rows(table)
    return rows.assign(measure="attention", value=rows["attefa"])[VALUES]
