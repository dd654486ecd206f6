"""The score table and the columns that protocols share."""

import pyarrow as pa

from plumbline.store import INSTANCE_KEY, STATUS, WORD, declare

PREDICTED = {"seed": pa.int64(), **INSTANCE_KEY, "predicted_class": pa.int32(), "length": pa.int32()}

QUARTILES = ("q25", "q50", "q75")

SCORES = declare(
    "scores",
    2,
    {
        "seed": pa.int64(),
        **INSTANCE_KEY,
        "predicted_class": pa.int32(),
        "measure_a": WORD,
        "measure_b": WORD,
        "statistic": WORD,
        "tokens": WORD,
        "value": pa.float64(),
        "p_value": pa.float64(),
        "length": pa.int32(),
        **STATUS,
    },
    required=["seed", "split", "instance", "statistic", "status"],
)
