"""Faithfulness by masked erasure: the area between curves, as for ROAR."""

import pandas as pd

from plumbline.protocols.masked_erasure.schemas import MASKED_ERASURE, MASKED_FAITHFULNESS
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.protocols.roar.table import faithfulness_rows
from plumbline.registry import table
from plumbline.store import TableSchema
from plumbline.tables.chance import at_chance
from plumbline.tables.sources import Sources


@table("masked_faithfulness", reads=["masked_erasure", "performance"], params=["headlines", "random"])
def masked_faithfulness_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """The faithfulness of each measure by its curve of masked erasure."""
    curves = sources.frame(MASKED_ERASURE).assign(strategy="masked", unit="relative", trained_on="words")
    excluded = at_chance(sources.frame(PERFORMANCE))
    rows = faithfulness_rows(curves, sources.facts["headlines"], sources.facts["random"], excluded)
    return MASKED_FAITHFULNESS, rows
