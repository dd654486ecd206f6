"""What every heavy job cost, from the manifests that the jobs wrote."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from plumbline.protocols.timings.schemas import TIMINGS
from plumbline.registry import table
from plumbline.store import TableSchema, read_json
from plumbline.tables.sources import Sources

KEYS = ("dataset", "variant", "model", "seeds", "measure")
COSTS = ("seconds", "startup_seconds", "peak_rss", "peak_gpu", "device", "rows", "rows_per_second", "token_budget")
WHOLE = {"rows": "Int64", "token_budget": "Int64"}


def timings(manifests: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Rows of the table `timings`; memory in MiB. One row per subword of work, and one more, which has `event` and no
    costs, for everything out of the ordinary that happened to it."""
    rows = []
    for manifest in (job | part for job in manifests for part in job["parts"]):
        keys = {"rule": manifest["rule"]} | {key: manifest["keys"].get(key) for key in KEYS}
        rows.append(keys | {cost: manifest[cost] for cost in COSTS} | {"event": None})
        rows += [keys | {"device": manifest["device"], "event": event} for event in manifest["events"]]
    frame = pd.DataFrame(rows).astype(WHOLE)
    return frame.sort_values(["rule", *KEYS], kind="stable", ignore_index=True)


@table("timings", reads=["manifests"])
def timings_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """What every heavy job of the study cost."""
    return TIMINGS, timings(read_json(file.path) for file in sources["manifests"])
