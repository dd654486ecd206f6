"""The manifest of a study: its config, code, data that were partial, host, devices and run time."""

import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from plumbline.errors import PlumblineError
from plumbline.project import PROJECT
from plumbline.runtime.job import plain_values, versions

# The file that the last job of a study writes, and the folder in which it lies.
MANIFEST, RESULTS = "manifest.json", "results"


def manifest(
    study: dict[str, Any],
    excluded: list[dict[str, Any]],
    timings: pd.DataFrame,
    summaries: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Plain values for `results/manifest.json`; `summaries` are those of the datasets."""
    return {
        "study": plain_values(study),
        # Keys of JSON files are sorted, but the order of datasets, models and measures means something.
        "order": {section: list(entries) for section, entries in study.items() if hasattr(entries, "items")},
        "excluded": plain_values(excluded),
        "partial": {summary["dataset"]: summary["partial"] for summary in summaries if summary.get("partial")},
        "versions": versions(),
        "commit": commit(),
        "host": platform.node(),
        "devices": sorted(map(str, timings["device"].unique())),
        "seconds": float(timings["seconds"].sum()),
        "runs": int(timings["event"].isna().sum()),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def study_of(manifest: dict[str, Any]) -> dict[str, Any]:
    """The config of the study of a manifest, with the entries of its sections in order."""
    config = manifest["study"]
    order = manifest.get("order", {})
    return config | {section: {name: config[section][name] for name in names} for section, names in order.items()}


def find_results(folder: Path) -> Path:
    """The folder of results of a finished run."""
    if not folder.is_dir():
        raise PlumblineError(f"There is no folder '{folder}'; give the folder in which a study ran.")
    for results in (folder, folder / RESULTS):
        if (results / MANIFEST).is_file():
            return results
    if any((results / part).is_dir() for results in (folder, folder / RESULTS) for part in ("models", "tables")):
        raise PlumblineError(
            f"The run in '{folder}' is not finished: its results have no {MANIFEST}, which the last job writes. Run "
            "the study to the end (target `all`)."
        )
    raise PlumblineError(f"'{folder}' has no results of a study: there is no '{folder / RESULTS / MANIFEST}'.")


def commit(project: Path = PROJECT) -> str:
    """The commit of a clone, with `+` if its files were changed since; empty for an installed package."""
    if not (project / ".git").exists():
        # An installed package may lie within another repository.
        return ""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--abbrev=40", "--dirty=+", "--exclude=*"],
            cwd=project, capture_output=True, text=True, timeout=20, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return described.stdout.strip()
