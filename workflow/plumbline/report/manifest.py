"""The manifest of a study: its config, host, devices and run time."""

import platform
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from plumbline.runtime.job import plain_values, versions


def manifest(study: dict[str, Any], excluded: list[dict[str, Any]], timings: pd.DataFrame) -> dict[str, Any]:
    """Plain values for `results/manifest.json`."""
    return {
        "study": plain_values(study),
        "excluded": plain_values(excluded),
        "versions": versions(),
        "host": platform.node(),
        "devices": sorted(map(str, timings["device"].unique())),
        "seconds": float(timings["seconds"].sum()),
        "runs": int(timings["event"].isna().sum()),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
