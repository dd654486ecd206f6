"""Tables of prepared data: instances, vocabulary and masks."""

import pyarrow as pa

from plumbline.store import FLAGS, GROUPS, INSTANCE_KEY, INTEGERS, declare

INSTANCES = declare(
    "instances",
    4,
    {
        **INSTANCE_KEY,
        "label": pa.int32(),
        "tokens": pa.list_(pa.string()),
        "ids": INTEGERS,
        "maskable": FLAGS,
        "tokens_b": pa.list_(pa.string()),
        "ids_b": INTEGERS,
        "maskable_b": FLAGS,
        "word": INTEGERS,
        "word_b": INTEGERS,
        "answers": INTEGERS,
        "evidence": FLAGS,
        "groups": GROUPS,
        "groups_b": GROUPS,
        "original_label": pa.int32(),
    },
    required=["split", "instance", "label", "tokens", "ids", "maskable"],
)

VOCABULARY = declare(
    "vocabulary",
    1,
    {"id": pa.int32(), "word": pa.string(), "document_frequency": pa.int32()},
    required=["id", "word", "document_frequency"],
)

# The masked words of each text and seed, one flag per word.
MASKS = declare(
    "masks", 1, {"seed": pa.int64(), **INSTANCE_KEY, "masked": FLAGS}, required=["seed", "split", "instance", "masked"]
)
