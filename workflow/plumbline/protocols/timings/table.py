"""Run time and memory of every heavy job, from the manifests of the jobs."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from plumbline.protocols.timings.schemas import TIMINGS
from plumbline.registry import table
from plumbline.store import TableSchema, read_json
from plumbline.tables.sources import Sources

KEYS = ("dataset", "variant", "model", "seeds", "measure")
COSTS = ("seconds", "startup_seconds", "peak_rss", "peak_gpu", "device", "rows", "rows_per_second", "token_budget")
INTEGERS = {"rows": "Int64", "token_budget": "Int64"}


def timing_rows(manifests: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Rows of the table `timings`, memory in MiB: one row per part of a job, and one without costs for each `event`
    logged during it."""
    rows = []
    for part in (job | part for job in manifests for part in job["parts"]):
        keys = {"rule": part["rule"]} | {key: part["keys"].get(key) for key in KEYS}
        rows.append(keys | {cost: part[cost] for cost in COSTS} | {"event": None})
        rows += [keys | {"device": part["device"], "event": event} for event in part["events"]]
    return pd.DataFrame(rows).astype(INTEGERS).sort_values(["rule", *KEYS], kind="stable", ignore_index=True)


@table("timings", reads=["manifests"])
def timings_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """Run time and memory of every heavy job of the study."""
    return TIMINGS, timing_rows(read_json(file.path) for file in sources["manifests"])
