"""Tables that compare our numbers with published ones."""

import pyarrow as pa

from plumbline.store import WORD, declare

REPRODUCTION = declare(
    "reproduction",
    5,
    {
        "study": WORD,
        "table": WORD,
        "dataset": WORD,
        "variant": WORD,
        "model": WORD,
        "measure_a": WORD,
        "measure_b": WORD,
        "predicted_class": WORD,
        "seed": pa.int64(),
        "selected_on": WORD,
        "metric": WORD,
        "published": pa.float64(),
        "published_spread": pa.float64(),
        "published_low": pa.float64(),
        "published_high": pa.float64(),
        "published_later": pa.float64(),
        "ours": pa.float64(),
        "ours_spread": pa.float64(),
        "n_seeds": pa.int32(),
        "tolerance": pa.float64(),
        "within": pa.bool_(),
        "note": pa.string(),
    },
    required=["study", "table", "dataset", "metric", "published"],
)

# Published numbers that rest on a quirk of the published code or print: ours with and without it.
QUIRKS = declare(
    "quirks",
    1,
    {
        # The quirk, then the published number.
        **dict.fromkeys(("quirk", "study", "where", "what", "with", "without"), WORD),
        **dict.fromkeys(("table", "dataset", "model", "measure_a", "measure_b", "predicted_class", "metric"), WORD),
        "published": pa.float64(),
        **{
            f"{side}{part}": kind
            for side in ("as_published", "corrected")
            for part, kind in {"": pa.float64(), "_spread": pa.float64(), "_seeds": pa.int32()}.items()
        },
        "status": WORD,
        "reason": pa.string(),
    },
    required=["quirk", "study", "where", "what", "status"],
    latex={
        "keep": {"status": "ok"},
        "show": [
            *("quirk", "table", "dataset", "model", "measure_a", "measure_b", "metric"),
            *("published", "as_published", "corrected"),
        ],
    },
)
