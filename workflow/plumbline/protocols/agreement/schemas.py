"""The table `agreement`."""

import pyarrow as pa

from plumbline.store import CELL, STATUS, WORD, declare

AGREEMENT = declare(
    "agreement",
    2,
    {
        **CELL,
        "seed": pa.int64(),
        "measure_a": WORD,
        "measure_b": WORD,
        "statistic": WORD,
        "tokens": WORD,
        "predicted_class": WORD,
        "n": pa.int32(),
        "dropped": pa.int32(),
        "mean": pa.float64(),
        "std": pa.float64(),
        "significant_fraction": pa.float64(),
        **STATUS,
    },
    required=[*CELL, "seed", "measure_a", "measure_b", "statistic", "predicted_class", "status"],
    latex={
        "keep": {"statistic": "kendall"},
        "index": ["dataset", "variant", "model", "tokens", "measure_a", "measure_b"],
        "columns": ["predicted_class"],
        "values": "mean",
    },
)
