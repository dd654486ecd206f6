"""Finished runs, recorded next to a paper or in a repository.

A recorded run is a folder with the tables as Parquet, the study's config and the manifest of the run.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from shutil import copyfile
from typing import Any

import pandas as pd
import yaml

from plumbline.errors import PlumblineError, nearest
from plumbline.papers.comparison import counts
from plumbline.protocols.scorecard.verdict import verdict
from plumbline.report.manifest import MANIFEST, find_results, study_of
from plumbline.report.tables import number, without_categories
from plumbline.store import read_json, read_stamped, write_json, write_text

CONFIG = "study.yaml"


def record_run(results: Path, folder: Path, note: str = "") -> list[Path]:
    """Copy the tables, the config and the manifest of a finished run to a folder; the files written.

    The note, such as the hardware, goes into the manifest. Of paths of the machine only the last part is kept.
    """
    results = find_results(results)
    tables = sorted((results / "tables").glob("*.parquet"))
    finished = (results / MANIFEST).stat().st_mtime_ns
    if newer := [file.stem for file in tables if file.stat().st_mtime_ns > finished]:
        raise PlumblineError(
            f"The table '{newer[0]}' of '{results}' is newer than its {MANIFEST}, so they may come from different "
            "runs; run the study to the end (target `all`)."
        )
    if folder.is_dir() and any(folder.iterdir()) and not (folder / CONFIG).is_file():
        raise PlumblineError(
            f"'{folder}' is neither empty nor a recorded run: it has no {CONFIG}; give another folder."
        )
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    for old in (folder / "tables").glob("*.parquet"):
        old.unlink()
    for file in tables:
        copyfile(file, folder / "tables" / file.name)
    manifest = read_json(results / MANIFEST)
    manifest["study"] = _without_folders(manifest["study"])
    write_text(folder / CONFIG, yaml.safe_dump(study_of(manifest), sort_keys=False, allow_unicode=True))
    write_json(folder / MANIFEST, manifest | ({"note": note} if note else {}))
    return [*(folder / "tables" / file.name for file in tables), folder / CONFIG, folder / MANIFEST]


def _without_folders(value: Any) -> Any:
    """Settings with the last part of each absolute path."""
    if isinstance(value, dict):
        return {key: _without_folders(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_folders(inner) for inner in value]
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


class RecordedRun:
    """The tables and the manifest of a recorded run, as pages read them.

    A study that was run in parts may have several folders; its rows are those of all parts.
    """

    def __init__(self, folder: Path, *parts: Path) -> None:
        self.folder, self.folders = folder, (folder, *parts)
        if len({place.resolve() for place in self.folders}) < len(self.folders):
            raise PlumblineError(f"the recorded run '{folder}' has a part that is named twice.")
        for place in self.folders:
            if not (place / "tables").is_dir():
                raise PlumblineError(f"'{place}' is not a recorded run: it has no folder `tables`.")
        self._read = cache(self._table)

    def _table(self, name: str) -> pd.DataFrame:
        tables = [without_categories(read_stamped(path)[1].to_pandas()) for path in self._files(name)]
        if not tables:
            raise PlumblineError(f"there is no table '{name}' in '{self.folder / 'tables'}'.")
        return pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]

    def _files(self, name: str) -> list[Path]:
        return [path for place in self.folders if (path := place / "tables" / f"{name}.parquet").is_file()]

    def has(self, name: str) -> bool:
        """Whether the run has a table, with rows."""
        return bool(self._files(name)) and len(self._read(name)) > 0

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest of the run, of several parts that of the first."""
        return dict(read_json(self.folder / MANIFEST))

    def rows(self, table: str, /, **keys: Any) -> pd.DataFrame:
        """The rows of a table with these values; a list admits several."""
        frame = only(self._read(table), f"table '{table}'", **keys)
        if frame.empty:
            raise PlumblineError(f"table '{table}' has no row with {_keys(keys)}.")
        return frame

    def value(self, table: str, column: str, /, **keys: Any) -> Any:
        """The value of a column that all rows with these keys share, often of one row."""
        found = self.rows(table, **keys)
        _check_column(found, f"table '{table}'", column)
        values = found[column].unique()
        if len(values) > 1:
            differing = [
                str(key) for key in found.select_dtypes(exclude=["number"]) if found[key].map(str).nunique() > 1
            ]
            raise PlumblineError(
                f"'{column}' of table '{table}' has {len(values)} values with {_keys(keys)}; add a key that selects "
                f"one: these rows differ in {', '.join(differing) or 'numbers only'}."
            )
        return values[0]

    def interval(self, table: str, decimals: int = 2, /, **keys: Any) -> str:
        """A value or τ with its 95 % interval, such as `0.31 [0.27, 0.35]`; with too few seeds without it."""
        name = "value" if "value" in self._read(table) else "tau"
        value, low, high = (self.value(table, column, **keys) for column in (name, "ci_low", "ci_high"))
        if pd.isna(value):
            raise PlumblineError(f"table '{table}' has no value for {_keys(keys)}.")
        return with_interval(value, low, high, decimals)

    def verdict(self, random: str = "random") -> list[str]:
        """What the run found, in sentences."""
        names = {path.stem for place in self.folders for path in (place / "tables").glob("*.parquet")}
        return verdict({name: self._read(name) for name in names}, random)


def only(frame: pd.DataFrame, where: str = "the table", /, **keys: Any) -> pd.DataFrame:
    """Those of some rows with these values, perhaps none; a list admits several."""
    for key, value in keys.items():
        _check_column(frame, where, key)
        frame = frame[frame[key].isin(value if isinstance(value, (list, tuple)) else [value])]
    return frame


def overview(folder: Path) -> str:
    """A table of all recorded runs in a folder: published results judged and within tolerance, hours of jobs, and the
    notes of their manifests."""
    lines = []
    runs = sorted(path.parent for path in folder.rglob("tables") if path.parent != folder)
    for run in map(RecordedRun, runs):
        judged, within = counts(run.rows("reproduction")) if run.has("reproduction") else (0, 0)
        hours = ["", ""]
        if run.has("timings"):
            seconds = run.rows("timings").groupby("device")["seconds"].sum() / 3600
            hours = [number(value, 2) for value in (seconds.sum(), seconds.get("cuda", 0.0))]
        note = run.manifest.get("note", "") if (run.folder / MANIFEST).is_file() else ""
        name = run.folder.relative_to(folder).as_posix()
        lines.append([name, *([str(judged), str(within)] if judged else ["", ""]), *hours, note])
    if not lines:
        raise PlumblineError(f"There is no recorded run in '{folder}'; `plumbline record` makes one.")
    return markdown_table(["run", "results judged", "within tolerance", "hours of jobs", "on a GPU", "note"], lines)


def markdown_table(titles: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    rules = ["---"] * len(titles)
    return "\n".join(
        [f"| {' | '.join(titles)} |", f"|{'|'.join(rules)}|", *(f"| {' | '.join(line)} |" for line in lines)]
    )


def with_interval(value: float, low: float, high: float, decimals: int) -> str:
    ends = "" if pd.isna(low) else f" [{number(low, decimals)}, {number(high, decimals)}]"
    return number(value, decimals) + ends


def _check_column(frame: pd.DataFrame, where: str, column: str) -> None:
    if column not in frame:
        raise PlumblineError(f"{where} has no column '{column}'; {nearest(column, list(frame.columns))}")


def _keys(keys: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value!r}" for key, value in keys.items()) or "any value"
