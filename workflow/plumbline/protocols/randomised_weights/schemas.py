"""Tables of randomised weights."""

import pyarrow as pa

from plumbline.protocols.schemas import PREDICTED
from plumbline.store import CELL, STATUS, WORD, declare

# `mode` is cascading or independent, `stage` the last randomised layer, `depth` its number from the output, from 1.
STAGE = {"measure": WORD, "mode": WORD, "stage": WORD, "depth": pa.int32()}

# One row per seed, measure, mode, stage and instance.
RANDOMISED_WEIGHTS_SCORES = declare(
    "randomised_weights_scores",
    1,
    {**PREDICTED, **STAGE, "kendall": pa.float64(), "spearman": pa.float64(), **STATUS},
    required=["seed", "split", "instance", *STAGE, "status"],
)

RANDOMISED_WEIGHTS = declare(
    "randomised_weights",
    1,
    {
        **CELL,
        "seed": pa.int64(),
        **STAGE,
        "n": pa.int32(),
        "dropped": pa.int32(),
        "kendall": pa.float64(),
        "kendall_std": pa.float64(),
        "spearman": pa.float64(),
        **STATUS,
    },
    required=[*CELL, "seed", *STAGE, "n", "status"],
    latex={
        "keep": {"mode": "cascading"},
        "index": ["dataset", "variant", "model", "measure"],
        "columns": ["depth", "stage"],
        "values": "kendall",
    },
)
