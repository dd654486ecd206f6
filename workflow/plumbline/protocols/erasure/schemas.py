"""Tables of erasure."""

import pyarrow as pa

from plumbline.protocols.schemas import PREDICTED
from plumbline.store import CELL, NUMBERS, STATUS, WORD, declare

# One row per seed, measure and instance; lists have one entry per ratio.
ERASURE_SCORES = declare(
    "erasure_scores",
    3,
    {
        **PREDICTED,
        "measure": WORD,
        "comprehensiveness": pa.float64(),
        "sufficiency": pa.float64(),
        "comprehensiveness_at": NUMBERS,
        "sufficiency_at": NUMBERS,
        "normalised_aopc": pa.float64(),
        "morf_lerf": pa.float64(),
        "fall_to_nothing": pa.float64(),
        "soft_fall_without": pa.float64(),
        "soft_fall_alone": pa.float64(),
    },
    required=["seed", "split", "instance", "predicted_class", "measure"],
)

# A hard metric without a ratio is the area over the perturbation curve.
ERASURE = declare(
    "erasure",
    2,
    {
        **CELL,
        "seed": pa.int64(),
        "measure": WORD,
        "metric": WORD,
        "ratio": pa.float64(),
        "n": pa.int32(),
        "dropped": pa.int32(),
        "mean": pa.float64(),
        "std": pa.float64(),
        **STATUS,
    },
    required=[*CELL, "seed", "measure", "metric", "n", "status"],
    latex={
        "keep": {"ratio": float("nan")},
        "index": ["dataset", "variant", "model", "measure"],
        "columns": ["metric"],
        "values": "mean",
        "decimals": 3,
    },
)
