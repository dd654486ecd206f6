"""Known truth while models learn: the scores of the epochs that were kept, of all cells."""

import pandas as pd

from plumbline.protocols.ground_truth.schemas import TRACE, TRACE_SCORES
from plumbline.registry import table
from plumbline.store import CELL, TableSchema, read_table
from plumbline.tables.sources import Sources


@table("trace", reads=["traces"])
def trace_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """What models say of the truth while they learn."""
    frames = [
        read_table(path, TRACE_SCORES).to_pandas().assign(**{key: cell[key] for key in CELL})
        for cell, path in sources["traces"]
    ]
    return TRACE, pd.concat(frames, ignore_index=True)
