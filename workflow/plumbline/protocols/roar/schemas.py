"""Tables of masking and retraining."""

import pyarrow as pa

from plumbline.store import STATUS, WORD, declare

# Performance of models trained on masked texts. Each curve is complete: level 0 is the model of the plain texts, and
# all measures share the last relative level, at which everything is masked.
# `trained_on` is `words`, or `positions` for a model that sees only which words are masked.
CURVE = {"dataset": WORD, "model": WORD, "strategy": WORD, "unit": WORD, "measure": WORD}

ROAR = declare(
    "roar",
    1,
    {
        **CURVE,
        "level": pa.int32(),
        "trained_on": WORD,
        "variant": WORD,
        "seed": pa.int64(),
        "metric": WORD,
        "value": pa.float64(),
        **STATUS,
    },
    required=[*CURVE, "level", "trained_on", "variant", "seed", "metric", "status"],
    latex={
        "keep": {"trained_on": ["words"], "metric": ["accuracy", "macro_f1"]},
        "index": ["dataset", "model", "strategy", "unit", "metric", "measure"],
        "columns": ["level"],
        "values": "value",
    },
)

# Areas are shares of the area between random and `floor`, the performance with everything masked.
FAITHFULNESS = declare(
    "faithfulness",
    1,
    {
        **CURVE,
        "metric": WORD,
        "n_seeds": pa.int32(),
        "n_levels": pa.int32(),
        "per_seed": pa.list_(pa.float64()),
        "faithfulness": pa.float64(),
        "ci_low": pa.float64(),
        "ci_high": pa.float64(),
        "unclipped": pa.float64(),
        "unclipped_ci_low": pa.float64(),
        "unclipped_ci_high": pa.float64(),
        "floor": pa.float64(),
        "floor_ci_low": pa.float64(),
        "floor_ci_high": pa.float64(),
        **STATUS,
    },
    required=[*CURVE, "metric", "n_seeds", "status"],
    latex={
        "keep": {"status": "ok"},
        "index": ["dataset", "model", "strategy", "unit", "metric"],
        "columns": ["measure"],
        "values": "faithfulness",
        "interval": ("ci_low", "ci_high"),
        "decimals": 3,
    },
)

# The mean share of a text's importance held by its `top` most important words, a number or a percentage of them.
SPARSITY = declare(
    "sparsity",
    1,
    {
        "dataset": WORD,
        "model": WORD,
        "measure": WORD,
        "seed": pa.int64(),
        "unit": WORD,
        "top": pa.int32(),
        "share": pa.float64(),
        "n": pa.int32(),
    },
    required=["dataset", "model", "measure", "seed", "unit", "top", "n"],
    latex={
        "keep": {"unit": "absolute"},
        "index": ["dataset", "model", "measure"],
        "columns": ["top"],
        "values": "share",
    },
)

# Hooker et al.'s synthetic check: accuracy by the number of removed features.
SYNTHETIC_ROAR = declare(
    "synthetic_roar",
    1,
    {"seed": pa.int64(), "curve": WORD, "removed": pa.int32(), "accuracy": pa.float64()},
    required=["seed", "curve", "removed", "accuracy"],
    latex={"keep": {}, "index": ["removed"], "columns": ["curve"], "values": "accuracy", "decimals": 3},
)
