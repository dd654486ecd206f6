"""The table `performance`."""

import pyarrow as pa

from plumbline.store import CELL, WORD, declare

PERFORMANCE = declare(
    "performance",
    1,
    {**CELL, "seed": pa.int64(), "split": WORD, "metric": WORD, "value": pa.float64(), "status": WORD, "reason": WORD},
    required=[*CELL, "seed", "split", "metric", "status"],
    latex={
        "keep": {"split": "test"},
        "index": ["dataset", "variant", "model"],
        "columns": ["metric"],
        "values": "value",
    },
)
