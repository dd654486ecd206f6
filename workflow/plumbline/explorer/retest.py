"""The reliability of measures in the explorer."""

from collections.abc import Sequence

from plumbline.protocols.reliability.schemas import RELIABILITY
from plumbline.store import CELL, read_table


def read_reliability(tables: Sequence[str]) -> dict[tuple[str, ...], dict[str, float]]:
    """By dataset, variant and model the test-retest τ of each measure with draws, the mean over seeds; empty without a
    table."""
    reliability: dict[tuple[str, ...], dict[str, float]] = {}
    for path in tables:
        frame = read_table(path, RELIABILITY).to_pandas()
        rows = frame[frame["stochastic"] & (frame["status"] == "ok")]
        means = rows.groupby([*CELL, "measure"], observed=True)["kendall"].mean()
        for (*cell, measure), tau in means.items():
            reliability.setdefault(tuple(cell), {})[measure] = round(tau, 3)
    return reliability
