"""Tables that training writes."""

import pyarrow as pa

from plumbline.store import INSTANCE_KEY, INTEGERS, NUMBERS, WORD, declare

HISTORY = declare(
    "history",
    1,
    {
        "seed": pa.int64(),
        "epoch": pa.int32(),
        "split": WORD,
        "metric": WORD,
        "value": pa.float64(),
        "seconds": pa.float64(),
    },
    required=["seed", "epoch", "split", "metric"],
)

# `answers` are the possible classes of an instance, if not all are.
PREDICTIONS = declare(
    "predictions",
    2,
    {"seed": pa.int64(), **INSTANCE_KEY, "label": pa.int32(), "answers": INTEGERS, "probabilities": NUMBERS},
    required=["seed", "split", "instance", "label", "probabilities"],
)
