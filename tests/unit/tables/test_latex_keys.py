"""No LaTeX table averages over a key as if its values were seeds."""

import pyarrow as pa
import pytest

from plumbline.conformance.protocols import OWN_TABLES
from plumbline.store import schema_of

# Keys that others decide, or that are meant to be taken together.
DECIDED = {
    # The level and the measure determine the variant.
    "roar": {"variant"},
    # Only the truth is kept, which is one group; the variant determines its manipulation.
    "ground_truth": {"group", "manipulation", "kind", "level"},
    # The mean and spread over jobs.
    "timings": {"dataset", "variant", "model", "seeds", "measure", "event"},
}
NO_KEYS = {
    "seed",
    "status",
    "reason",
    "direction",
    "twin_of",
    "degraded_of",
    "matched",
    "resampled",
    "selected_on_test",
}


def keys(name: str) -> set[str]:
    """The columns of a table that name what a row is about: words, and numbers that no row may lack."""
    schema = schema_of(name).schema
    words = {field.name for field in schema if pa.types.is_dictionary(field.type)}
    numbers = {"level", "top", "epsilon", "strength", "ratio", "base_seed", "removed", "class", "target_rate"}
    return {field for field in schema.names if field in words | numbers} - NO_KEYS


@pytest.mark.parametrize("name", [name for name, kind in OWN_TABLES.items() if "index" in kind.latex])
def test_every_key_is_kept_spans_a_line_or_spans_a_column(name):
    layout = schema_of(name).latex
    single = {column for column, value in layout["keep"].items() if not isinstance(value, list) or len(value) == 1}
    lost = keys(name) - set(layout["index"]) - set(layout["columns"]) - single - DECIDED.get(name, set())
    assert not lost, f"{name}.tex takes what differs in {sorted(lost)} together"


def test_decided_keys_exist():
    assert all(others <= set(schema_of(name).schema.names) for name, others in DECIDED.items())
