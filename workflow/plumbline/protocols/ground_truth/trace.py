"""Ground truth during training: the scores of all cells at the stored epochs."""

import pandas as pd

from plumbline.protocols.ground_truth.schemas import TRACE, TRACE_SCORES
from plumbline.registry import table
from plumbline.store import CELL, TableSchema, read_table
from plumbline.tables.sources import Sources


@table("trace", reads=["traces"])
def trace_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """The ground-truth scores of models during training."""
    frames = [
        read_table(path, TRACE_SCORES).to_pandas().assign(**{key: cell[key] for key in CELL})
        for cell, path in sources["traces"]
    ]
    return TRACE, pd.concat(frames, ignore_index=True)
