"""Tables of masked erasure."""

import pyarrow as pa

from plumbline.protocols.roar.schemas import FAITHFULNESS
from plumbline.protocols.schemas import PREDICTED
from plumbline.store import CELL, INTEGERS, NUMBERS, STATUS, WORD, declare

# One row per seed, measure and instance; lists have one entry per level, nothing masked first and everything last.
MASKED_ERASURE_SCORES = declare(
    "masked_erasure_scores",
    1,
    {**PREDICTED, "label": pa.int32(), "measure": WORD, "predicted_at": INTEGERS, "p_value_at": NUMBERS},
    required=["seed", "split", "instance", "predicted_class", "label", "measure"],
)

# Performance at each level, and the share of texts that are out of the training distribution.
MASKED_ERASURE = declare(
    "masked_erasure",
    1,
    {
        **CELL,
        "seed": pa.int64(),
        "measure": WORD,
        "level": pa.int32(),
        "metric": WORD,
        "value": pa.float64(),
        "n": pa.int32(),
        **STATUS,
    },
    required=[*CELL, "seed", "measure", "level", "metric", "n", "status"],
    latex={
        "keep": {"variant": "plain"},
        "index": ["dataset", "model", "metric", "measure"],
        "columns": ["level"],
        "values": "value",
        "decimals": 3,
    },
)

# The columns of `faithfulness`, whose strategy is `masked`.
MASKED_FAITHFULNESS = declare(
    "masked_faithfulness",
    1,
    {field.name: field.type for field in FAITHFULNESS.schema},
    required=[field.name for field in FAITHFULNESS.schema if not field.nullable],
    latex=FAITHFULNESS.latex,
)
