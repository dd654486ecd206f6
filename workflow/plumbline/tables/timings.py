"""What every heavy job cost, from the manifests that the jobs wrote."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

KEYS = ("dataset", "variant", "model", "seeds", "measure")
COSTS = ("seconds", "startup_seconds", "peak_rss", "peak_gpu", "device", "rows", "rows_per_second")


def timings(manifests: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Rows of the table `timings`; memory in MiB."""
    rows = [
        {"rule": manifest["rule"]}
        | {key: manifest["keys"].get(key) for key in KEYS}
        | {cost: manifest[cost] for cost in COSTS}
        for manifest in manifests
    ]
    return pd.DataFrame(rows).sort_values(["rule", *KEYS], ignore_index=True)
