"""The tables `adversary` and `constant_output`."""

import pyarrow as pa

from plumbline.store import CELL, STATUS, WORD, declare

# One row per seed of the adversary and split that its epoch is chosen on; scores are on the test split at that epoch.
ADVERSARY = declare(
    "adversary",
    1,
    {
        **CELL,
        "adversary": WORD,
        "objective": WORD,
        "strength": pa.float64(),
        "base_seed": pa.int64(),
        "seed": pa.int64(),
        "selected_on": WORD,
        "epoch": pa.int32(),
        "epochs": pa.int32(),
        "f1": pa.float64(),
        "tvd": pa.float64(),
        "jsd": pa.float64(),
        "attefa": pa.float64(),
        **STATUS,
    },
    required=[*CELL, "adversary", "objective", "base_seed", "seed", "selected_on", "status"],
    latex={
        "keep": {"status": "ok"},
        "index": ["dataset", "variant", "model", "base_seed", "adversary", "objective", "strength"],
        "columns": ["selected_on"],
        "values": "attefa",
        "decimals": 3,
    },
)

# One row per base model of adversaries, on the test split.
CONSTANT_OUTPUT = declare(
    "constant_output",
    1,
    {**CELL, "base_seed": pa.int64(), "n": pa.int64(), "tvd": pa.float64(), **STATUS},
    required=[*CELL, "base_seed", "n", "status"],
)
