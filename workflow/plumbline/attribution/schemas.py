"""The table of importances."""

import pyarrow as pa

from plumbline.store import INSTANCE_KEY, NUMBERS, WORD, declare

ATTRIBUTIONS = declare(
    "attributions",
    4,
    {
        "measure": WORD,
        "seed": pa.int64(),
        **INSTANCE_KEY,
        "target": pa.int32(),
        "scores": NUMBERS,
        "pair": NUMBERS,
        "specials": NUMBERS,
        "residual": pa.float32(),
    },
    required=["measure", "seed", "split", "instance", "scores"],
)
