"""Tables of evidence."""

import pyarrow as pa

from plumbline.protocols.schemas import PREDICTED
from plumbline.store import CELL, STATUS, WORD, declare

# `auprc_chance` is the AUPRC of a random order, `evidence_share` the chance of the other two.
METRICS = {name: pa.float64() for name in ("auprc", "auprc_chance", "token_f1", "iou", "evidence_share")}

# One row per seed, measure and instance; `source` is how the evidence is known: by a rule, or marked by people.
EVIDENCE_SCORES = declare(
    "evidence_scores",
    1,
    {**PREDICTED, "correct": pa.bool_(), "measure": WORD, "source": WORD, **METRICS, **STATUS},
    required=["seed", "split", "instance", "correct", "measure", "status"],
)

# Means over instances; the interval is that of AUPRC, over instances.
EVIDENCE = declare(
    "evidence",
    1,
    {
        **CELL,
        "seed": pa.int64(),
        "measure": WORD,
        "source": WORD,
        "n": pa.int32(),
        "undefined": pa.int32(),
        **METRICS,
        "ci_low": pa.float64(),
        "ci_high": pa.float64(),
        "above_random": pa.float64(),
        **STATUS,
    },
    required=[*CELL, "seed", "measure", "n", "undefined", "status"],
    latex={
        "keep": {"variant": "plain"},
        "index": ["dataset", "source", "model"],
        "columns": ["measure"],
        "values": "auprc",
    },
)
