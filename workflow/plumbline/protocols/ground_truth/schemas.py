"""Ground-truth and rationale tables: scores per instance, and summaries."""

import pyarrow as pa

from plumbline.store import CELL, INSTANCE_KEY, STATUS, WORD, declare

# The columns that describe a manipulation.
MANIPULATED = {
    "manipulation": WORD,
    "kind": WORD,
    "visibility": pa.float64(),
    "level": pa.int32(),
    "draw": pa.int32(),
    "r": pa.float64(),
}

LABELLED = {"seed": pa.int64(), **INSTANCE_KEY, "label": pa.int32(), "predicted_class": pa.int32()}

# Means over instances for models at the stored epochs; `accuracy` is on the explained instances.
TRACE_COLUMNS = {
    "seed": pa.int64(),
    "epoch": pa.int32(),
    "measure": WORD,
    "group": WORD,
    "truth": pa.bool_(),
    "n": pa.int32(),
    "undefined": pa.int32(),
    "attributed_fraction": pa.float64(),
    "region_fraction": pa.float64(),
    "accuracy": pa.float64(),
    "dev_accuracy": pa.float64(),
}

TRACED = ["seed", "epoch", "measure", "group", "truth", "n", "undefined", "accuracy"]

# The share of a map's importance on each group that a manipulation defines; the first group is the `truth`.
GROUND_TRUTH_SCORES = declare(
    "ground_truth_scores",
    1,
    {
        **LABELLED,
        "measure": WORD,
        "group": WORD,
        "truth": pa.bool_(),
        **MANIPULATED,
        "attributed": pa.float64(),
        "region": pa.float64(),
        "found": pa.float64(),
        "auc": pa.float64(),
        "length": pa.int32(),
        "accuracy": pa.float64(),
        "chance_bound": pa.float64(),
        **STATUS,
    },
    required=["seed", "split", "instance", "label", "measure", "group", "truth", "status"],
)

# `class` is the label after reassignment, or `all`; `region_fraction` is the expectation of an uninformed measure.
GROUND_TRUTH = declare(
    "ground_truth",
    2,
    {
        **CELL,
        "seed": pa.int64(),
        "measure": WORD,
        "group": WORD,
        "truth": pa.bool_(),
        "class": WORD,
        **MANIPULATED,
        "n": pa.int32(),
        "undefined": pa.int32(),
        "attributed_fraction": pa.float64(),
        "ci_low": pa.float64(),
        "ci_high": pa.float64(),
        "region_fraction": pa.float64(),
        "above_region": pa.float64(),
        "found": pa.float64(),
        "auc": pa.float64(),
        "accuracy": pa.float64(),
        "chance_bound": pa.float64(),
        **STATUS,
    },
    required=[*CELL, "seed", "measure", "group", "truth", "class", "n", "undefined", "status"],
    latex={
        "keep": {"truth": True, "class": "all"},
        "index": ["dataset", "variant", "model"],
        "columns": ["measure"],
        "values": "attributed_fraction",
    },
)

TRACE_SCORES = declare("trace_scores", 1, TRACE_COLUMNS, required=TRACED)

TRACE = declare("trace", 1, {**CELL, **TRACE_COLUMNS}, required=[*CELL, *TRACED])

# The selection of a rationale model in each text: the number of words, of selected words, of words that a manipulation
# made decisive (null without a manipulation), and of those that are both.
RATIONALE_SCORES = declare(
    "rationale_scores",
    1,
    {
        **LABELLED,
        "target_rate": pa.float64(),
        "words": pa.int32(),
        "selected": pa.int32(),
        "truth": pa.int32(),
        "hits": pa.int32(),
    },
    required=["seed", "split", "instance", "label", "predicted_class", "words", "selected"],
)

# The optimum is the best that a selection of the same size can reach, over the whole dataset and, `each`, if every
# text has the same selection rate.
RATIONALES = declare(
    "rationales",
    1,
    {
        **CELL,
        "seed": pa.int64(),
        "target_rate": pa.float64(),
        "selection_rate": pa.float64(),
        "truth_rate": pa.float64(),
        "precision": pa.float64(),
        "recall": pa.float64(),
        **{f"optimum_{name}{each}": pa.float64() for each in ("", "_each") for name in ("precision", "recall")},
        "accuracy": pa.float64(),
        "n": pa.int32(),
        **STATUS,
    },
    required=[*CELL, "seed", "selection_rate", "accuracy", "n", "status"],
)
