"""The table of stored attention weights."""

import pyarrow as pa

from plumbline.store import INSTANCE_KEY, NUMBERS, declare

# `attention` concatenates the weights of all `heads`, each with one number per word.
ATTENTION = declare(
    "attention",
    1,
    {"seed": pa.int64(), **INSTANCE_KEY, "heads": pa.int32(), "attention": NUMBERS},
    required=["seed", "split", "instance", "heads", "attention"],
)
