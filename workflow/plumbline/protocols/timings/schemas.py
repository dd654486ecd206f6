"""The table `timings`."""

import pyarrow as pa

from plumbline.store import CELL, WORD, declare

TIMINGS = declare(
    "timings",
    2,
    {
        "rule": WORD,
        **CELL,
        "seeds": WORD,
        "measure": WORD,
        "seconds": pa.float64(),
        "startup_seconds": pa.float64(),
        "peak_rss": pa.float64(),
        "peak_gpu": pa.float64(),
        "device": WORD,
        "rows": pa.int64(),
        "rows_per_second": pa.float64(),
        "token_budget": pa.int64(),
        "event": pa.string(),
    },
    required=["rule", "device"],
    latex={"keep": {}, "index": ["rule"], "columns": ["device"], "values": "seconds", "decimals": 1},
)
