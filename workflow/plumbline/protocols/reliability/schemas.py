"""Tables of reliability."""

import pyarrow as pa

from plumbline.protocols.schemas import PREDICTED
from plumbline.store import CELL, STATUS, WORD, declare

# One row per seed, measure, repetition and instance; a measure without draws has one repetition.
RELIABILITY_SCORES = declare(
    "reliability_scores",
    1,
    {
        **PREDICTED,
        "measure": WORD,
        "stochastic": pa.bool_(),
        "repetition": pa.int32(),
        "kendall": pa.float64(),
        "spearman": pa.float64(),
        **STATUS,
    },
    required=["seed", "split", "instance", "measure", "stochastic", "repetition", "status"],
)

RELIABILITY = declare(
    "reliability",
    1,
    {
        **CELL,
        "seed": pa.int64(),
        "measure": WORD,
        "stochastic": pa.bool_(),
        "n": pa.int32(),
        "dropped": pa.int32(),
        "kendall": pa.float64(),
        "kendall_std": pa.float64(),
        "spearman": pa.float64(),
        **STATUS,
    },
    required=[*CELL, "seed", "measure", "stochastic", "n", "status"],
    latex={
        "keep": {"stochastic": True},
        "index": ["measure"],
        "columns": ["dataset", "variant", "model"],
        "values": "kendall",
    },
)
