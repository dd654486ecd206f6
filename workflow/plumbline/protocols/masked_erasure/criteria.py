"""Masked erasure on the scorecard."""

import pandas as pd

from plumbline.protocols.criteria import Measures
from plumbline.protocols.roar.criteria import masking_faithfulness
from plumbline.registry import criterion


@criterion("masked erasure", table="masked_faithfulness", direction="higher", range=[-1, 1], order=52)
def masked_erasure_faithfulness(table: pd.DataFrame, measures: Measures) -> pd.DataFrame:
    """Faithfulness of each seed."""
    return masking_faithfulness(table, measures, strategy="masked")
