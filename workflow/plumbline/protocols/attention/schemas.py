"""Tables of permuted and adversarial attention and of seed variance: scores per instance, and summaries."""

import pyarrow as pa

from plumbline.protocols.schemas import PREDICTED, QUARTILES
from plumbline.store import CELL, NUMBERS, STATUS, WORD, declare

# In LaTeX, the rows of all classes, with a column for each bin of the largest weight.
BY_BIN = {"keep": {"predicted_class": "all"}, "columns": ["max_attention_bin"], "decimals": 3}

PERMUTATION_SCORES = declare(
    "permutation_scores",
    1,
    {**PREDICTED, "max_attention": pa.float64(), "median_change": pa.float64()},
    required=["seed", "split", "instance", "predicted_class", "max_attention", "median_change"],
)

PERMUTATION = declare(
    "permutation",
    2,
    {
        **CELL,
        "seed": pa.int64(),
        "predicted_class": WORD,
        "max_attention_bin": WORD,
        "n": pa.int32(),
        "median_change_mean": pa.float64(),
        **{f"median_change_{quartile}": pa.float64() for quartile in QUARTILES},
        **STATUS,
    },
    required=[*CELL, "seed", "predicted_class", "max_attention_bin", "n", "status"],
    latex={**BY_BIN, "index": [*CELL], "values": "median_change_mean"},
)

# One row per epsilon: the adversary that differs most from the attention. `feasible` counts the adversaries within the
# bound after the search; if there is none, the row has one that was interpolated towards the attention.
ADVERSARIES = declare(
    "adversaries",
    2,
    {
        **PREDICTED,
        "epsilon": pa.float64(),
        "max_attention": pa.float64(),
        "feasible": pa.int32(),
        "jsd": pa.float64(),
        "change": pa.float64(),
        "attention": NUMBERS,
        "adversary": NUMBERS,
        "probabilities": NUMBERS,
        "adversary_probabilities": NUMBERS,
    },
    required=["seed", "split", "instance", "predicted_class", "epsilon", "feasible", "jsd", "change", "adversary"],
)

ADVERSARIAL_ATTENTION = declare(
    "adversarial_attention",
    2,
    {
        **CELL,
        "seed": pa.int64(),
        "predicted_class": WORD,
        "epsilon": pa.float64(),
        "max_attention_bin": WORD,
        "n": pa.int32(),
        "feasible_fraction": pa.float64(),
        "jsd_mean": pa.float64(),
        "jsd_std": pa.float64(),
        **{f"jsd_{quartile}": pa.float64() for quartile in QUARTILES},
        **STATUS,
    },
    required=[*CELL, "seed", "predicted_class", "epsilon", "max_attention_bin", "n", "status"],
    latex={**BY_BIN, "index": [*CELL, "epsilon"], "values": "jsd_mean"},
)

# One row per other seed and instance; class, length and largest weight are those of the base seed.
SEED_VARIANCE_SCORES = declare(
    "seed_variance_scores",
    1,
    {**PREDICTED, "base_seed": pa.int64(), "max_attention": pa.float64(), "jsd": pa.float64(), "tvd": pa.float64()},
    required=["seed", "split", "instance", "base_seed", "max_attention", "jsd", "tvd"],
)

SEED_VARIANCE = declare(
    "seed_variance",
    2,
    {
        **CELL,
        "base_seed": pa.int64(),
        "seed": pa.int64(),
        "max_attention_bin": WORD,
        "n": pa.int32(),
        "tvd_mean": pa.float64(),
        "jsd_mean": pa.float64(),
        **{f"jsd_{quartile}": pa.float64() for quartile in QUARTILES},
        **STATUS,
    },
    required=[*CELL, "base_seed", "seed", "max_attention_bin", "n", "status"],
    latex={**BY_BIN, "keep": {}, "index": [*CELL, "base_seed"], "values": "jsd_mean"},
)
