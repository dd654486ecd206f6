"""The table of sensitivity."""

import pyarrow as pa

from plumbline.store import CELL, STATUS, WORD, declare

LADDER = {"criterion": WORD, "direction": WORD, **CELL, "measure": WORD}

# One row per criterion, dataset, variant, model, base measure, share and number of seeds. Values and differences are
# means over all seeds, intervals those of the scorecard; `tau` and `in_order` are about all shares of the measure.
SENSITIVITY = declare(
    "sensitivity",
    1,
    {
        **LADDER,
        "share": pa.float64(),
        "n_seeds": pa.int32(),
        "value": pa.float64(),
        "ci_low": pa.float64(),
        "ci_high": pa.float64(),
        "difference": pa.float64(),
        "power": pa.float64(),
        "seen": pa.bool_(),
        "tau": pa.float64(),
        "in_order": pa.bool_(),
        **STATUS,
    },
    required=[*LADDER, "share", "n_seeds", "status"],
    latex={
        "keep": {"status": "ok"},
        "index": ["criterion", *CELL, "measure", "n_seeds"],
        "columns": ["share"],
        "values": "power",
    },
)
