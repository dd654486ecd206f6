"""Tables of the scorecard and the meta-evaluation."""

import pyarrow as pa

from plumbline.store import CELL, STATUS, WORD, declare

# In LaTeX, the rows with a value, and its interval.
WITH_INTERVAL = {"keep": {"status": "ok"}, "interval": ("ci_low", "ci_high")}

# One row per criterion, dataset, variant, model and measure, with or without a value. Intervals are over seeds.
# `twin_of` is an earlier measure that ranks words in the same order, `degraded_of` the base of a degraded one. The
# meta-evaluation compares criteria of `faithfulness`.
SCORECARD = declare(
    "scorecard",
    3,
    {
        "criterion": WORD,
        "direction": WORD,
        "faithfulness": pa.bool_(),
        **CELL,
        "measure": WORD,
        "n_seeds": pa.int32(),
        "per_seed": pa.list_(pa.float64()),
        "value": pa.float64(),
        "ci_low": pa.float64(),
        "ci_high": pa.float64(),
        "twin_of": WORD,
        "degraded_of": WORD,
        **STATUS,
    },
    required=["criterion", "direction", "faithfulness", *CELL, "measure", "n_seeds", "status"],
    latex={**WITH_INTERVAL, "index": [*CELL, "measure"], "columns": ["criterion"], "values": "value"},
)

# The mean τ of two rankings. `resampled` names what the interval resamples: datasets or models, and seeds.
TAU = {
    "matched": WORD,
    "n_cells": pa.int32(),
    "n_datasets": pa.int32(),
    "n_models": pa.int32(),
    "tau": pa.float64(),
    "ci_low": pa.float64(),
    "ci_high": pa.float64(),
    "resampled": WORD,
    **STATUS,
}
COUNTS = ["matched", "n_cells", "n_datasets", "n_models", "status"]

META_EVALUATION = declare(
    "meta_evaluation",
    3,
    {"criterion_a": WORD, "criterion_b": WORD, **TAU},
    required=["criterion_a", "criterion_b", *COUNTS],
    latex={**WITH_INTERVAL, "index": ["criterion_a"], "columns": ["criterion_b"], "values": "tau"},
)

# The agreement of each criterion with each kind of known truth. `p_value` is of a permutation test over measures.
TRUST = declare(
    "trust",
    2,
    {"criterion": WORD, "truth": WORD, **TAU, "p_value": pa.float64()},
    required=["criterion", "truth", *COUNTS],
    latex={**WITH_INTERVAL, "index": ["criterion"], "columns": ["truth"], "values": "tau"},
)

# The same, with all criteria on the same plain datasets, models and measures: for every model, and for each alone.
TRUST_COMMON = declare(
    "trust_common",
    2,
    {"criterion": WORD, "truth": WORD, "model": WORD, "n_measures": pa.int32(), **TAU, "p_value": pa.float64()},
    required=["criterion", "truth", "model", "n_measures", *COUNTS],
    latex={**WITH_INTERVAL, "index": ["model", "criterion"], "columns": ["truth"], "values": "tau"},
)
