"""The finished runs that a merge reads: where their artefacts are, and which study they ran."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from plumbline.config.external import locate, locate_files
from plumbline.config.resolve import resolve
from plumbline.config.resolved import Resolved
from plumbline.config.runs import Cell, Runs, list_runs
from plumbline.config.schema import Study
from plumbline.errors import PlumblineError
from plumbline.project import PROJECT
from plumbline.report.manifest import MANIFEST, RESULTS, find_results, study_of
from plumbline.store import read_json

# Options of entries that may name files or folders of the user.
PATHS = ("path", "name", "method", "checkpoint")


@dataclass(frozen=True)
class FinishedRun:
    """A finished run: its name in messages, its folder of results and its study."""

    name: str
    results: Path
    resolved: Resolved

    @property
    def study(self) -> Study:
        """The study, as configured."""
        return self.resolved.study

    @cached_property
    def runs(self) -> Runs:
        """What the study runs."""
        return list_runs(self.resolved)

    def place(self, path: str) -> Path:
        """An artefact of a study in this run."""
        return self.results / Path(path).relative_to(RESULTS)

    @cached_property
    def _keys(self) -> dict[str, set[str]]:
        cells = [*self.runs.cells, *self.runs.adversaries]
        return {
            "dataset": {*self.study.datasets},
            "model": {*self.study.models, *self.resolved.derived},
            "seeds": {cell.seeds for cell in cells},
            "protocol": {*self.study.protocols},
        }

    def runs_job(self, wildcards: dict[str, str]) -> bool:
        """Whether the dataset, model, seeds and protocol of a job are those of this run; others may be left over from
        an earlier one."""
        return all(wildcards[key] in names for key, names in self._keys.items() if key in wildcards)

    def cells(self, section: str, entry: str) -> list[Cell]:
        """The cells that an entry of the config applies to."""
        runs, manipulated = self.runs, self.resolved.manipulated
        if section == "models":
            return [cell for cell in runs.cells if cell.model == entry]
        if section == "protocols":
            return runs.scored[entry]
        if section == "manipulations":
            return [
                cell for cell in runs.cells if cell.variant in manipulated and manipulated[cell.variant].name == entry
            ]
        if section == "roar":
            return [cell for cell, points in runs.curves.items() if any(point.unit == entry for point in points)]
        return [cell for cell in runs.adversaries if self.resolved.derived[cell.model].adversary == entry]


def read_runs(folders: Sequence[Path]) -> list[FinishedRun]:
    """The runs in these folders, each either the folder in which a study ran or its folder of results."""
    if len(folders) < 2:
        raise PlumblineError("A merge needs two or more runs; give their folders.")
    seen: dict[Path, Path] = {}
    for folder in folders:
        results = find_results(folder).resolve()
        if results in seen:
            raise PlumblineError(f"'{seen[results]}' and '{folder}' are the same run; give each run once.")
        seen[results] = folder
    return [read_run(folder) for folder in folders]


def read_run(folder: Path) -> FinishedRun:
    """A finished run with its study; the study's own files are searched in its folder, then in the working folder."""
    results = find_results(folder)
    manifest = read_json(results / MANIFEST)
    config = manifest.get("study") if isinstance(manifest, dict) else None
    if not isinstance(config, dict):
        raise PlumblineError(f"'{results / MANIFEST}' is not the manifest of a study: it has no key `study`.")
    try:
        return FinishedRun(
            str(folder),
            results,
            resolve(_located(study_of(manifest), [results.parent, Path(), PROJECT]), external=False),
        )
    except PlumblineError as error:
        raise PlumblineError(f"The study of '{folder}' cannot be used: {error}") from None


def _located(config: dict[str, Any], folders: Sequence[Path]) -> dict[str, Any]:
    """The config with the absolute paths of the files that were found."""
    located = locate_files(config, folders)
    located["plugins"] = [os.path.abspath(path) for path in located.get("plugins", [])]
    located["raw"] = _absolute(locate(located["raw"], folders)) if "raw" in located else "raw"
    for section in ("datasets", "measures", "models"):
        for entry in located[section].values():
            entry.update({key: _absolute(entry[key]) for key in PATHS if key in entry})
    return located


def _absolute(value: Any) -> Any:
    """A path, a pointer `file.py:Class` or a file of each split with absolute paths, where the files exist."""
    if isinstance(value, dict):
        return {key: _absolute(path) for key, path in value.items()}
    if not isinstance(value, str):
        return value
    path, colon, name = value.rpartition(":") if ".py:" in value else (value, "", "")
    return f"{os.path.abspath(path)}{colon}{name}" if path and os.path.exists(path) else value
