"""Finished runs, recorded next to a paper or in a repository, and pages whose numbers are read from them.

A recorded run is a folder with the tables as Parquet, the study's config and the manifest of the run. A page is a Jinja
template with expressions in place of numbers; it fails where a row is missing, and so cannot go out of date.
"""

import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from shutil import copyfile
from textwrap import TextWrapper
from typing import Any

import pandas as pd
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError
from matplotlib.figure import Figure

from plumbline.errors import PlumblineError, nearest
from plumbline.figures import style
from plumbline.papers.comparison import counts
from plumbline.protocols.scorecard.figures import meta_evaluation, scorecard, trust
from plumbline.protocols.scorecard.verdict import verdict
from plumbline.protocols.sensitivity.table import smallest_seen
from plumbline.report.manifest import MANIFEST, find_results, study_of
from plumbline.report.tables import number, without_categories
from plumbline.store import read_json, read_stamped, write_json, write_text

WIDTH = 120
_WRAP = TextWrapper(WIDTH, break_long_words=False, break_on_hyphens=False)
_WRAP_ITEM = TextWrapper(WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
# The beginning of every page.
WRITTEN = "<!-- Written by `plumbline fill"
CONFIG = "study.yaml"
# Folder of a page's pictures, next to the page.
IMAGES = "images"
# Figures of a page, each drawn from rows of a table.
PICTURES: dict[str, Callable[[pd.DataFrame, str], Figure]] = {
    "scorecard": scorecard,
    "meta-evaluation": meta_evaluation,
    "trust": trust,
}


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
    """The tables and the manifest of a recorded run, as pages read them."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "tables").is_dir():
            raise PlumblineError(f"'{folder}' is not a recorded run: it has no folder `tables`.")
        self.folder = folder
        self._read = cache(self._table)

    def _table(self, name: str) -> pd.DataFrame:
        path = self.folder / "tables" / f"{name}.parquet"
        if not path.is_file():
            raise PlumblineError(f"there is no table '{name}' in '{path.parent}'.")
        return without_categories(read_stamped(path)[1].to_pandas())

    def has(self, name: str) -> bool:
        """Whether the run has a table, with rows."""
        path = self.folder / "tables" / f"{name}.parquet"
        return path.is_file() and len(self._read(name)) > 0

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest of the run."""
        return dict(read_json(self.folder / MANIFEST))

    def rows(self, table: str, **keys: Any) -> pd.DataFrame:
        """The rows of a table with these values; a list admits several."""
        frame = self._read(table)
        for key, value in keys.items():
            _check_column(frame, table, key)
            frame = frame[frame[key].isin(value if isinstance(value, (list, tuple)) else [value])]
        if frame.empty:
            raise PlumblineError(f"table '{table}' has no row with {_keys(keys)}.")
        return frame

    def value(self, table: str, column: str, **keys: Any) -> Any:
        """The value of a column that all rows with these keys share, often of one row."""
        found = self.rows(table, **keys)
        _check_column(found, table, column)
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

    def interval(self, table: str, decimals: int = 2, **keys: Any) -> str:
        """A value with its 95 % interval, such as `0.31 [0.27, 0.35]`; without it where there are too few seeds."""
        value, low, high = (self.value(table, column, **keys) for column in ("value", "ci_low", "ci_high"))
        if pd.isna(value):
            raise PlumblineError(f"table '{table}' has no value for {_keys(keys)}.")
        return _with_interval(value, low, high, decimals)

    def verdict(self, random: str = "random") -> list[str]:
        """What the run found, in sentences."""
        names = [path.stem for path in (self.folder / "tables").glob("*.parquet")]
        return verdict({name: self._read(name) for name in names}, random)


def overview(folder: Path) -> str:
    """A table of all recorded runs in a folder: published results judged and within tolerance, hours of jobs, and the
    notes of their manifests."""
    lines = []
    for run in [RecordedRun(path.parent) for path in sorted(folder.glob("*/tables"))]:
        judged, within = counts(run.rows("reproduction")) if run.has("reproduction") else (0, 0)
        seconds = run.rows("timings").groupby("device")["seconds"].sum() / 3600
        hours = [number(value, 2) for value in (seconds.sum(), seconds.get("cuda", 0.0))]
        note = run.manifest.get("note", "") if (run.folder / MANIFEST).is_file() else ""
        lines.append([run.folder.name, *([str(judged), str(within)] if judged else ["", ""]), *hours, note])
    if not lines:
        raise PlumblineError(f"There is no recorded run in '{folder}'; `plumbline record` makes one.")
    return _markdown(["run", "results judged", "within tolerance", "hours of jobs", "on a GPU", "note"], lines)


def _markdown(titles: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    rules = ["---"] * len(titles)
    return "\n".join(
        [f"| {' | '.join(titles)} |", f"|{'|'.join(rules)}|", *(f"| {' | '.join(line)} |" for line in lines)]
    )


def _with_interval(value: float, low: float, high: float, decimals: int) -> str:
    ends = "" if pd.isna(low) else f" [{number(low, decimals)}, {number(high, decimals)}]"
    return number(value, decimals) + ends


def grid(rows: pd.DataFrame, down: str, across: str, decimals: int = 2, intervals: bool = True) -> str:
    """A table of values by two keys: of one row with its interval, of several rows their mean, of none empty."""
    columns = list(rows[across].unique())
    lines = []
    for name, some in rows.groupby(down, sort=False, observed=True):
        cells = []
        for column in columns:
            cell = some[some[across] == column]
            if intervals and len(cell) == 1 and "ci_low" in cell:
                row = cell.iloc[0]
                cells.append(_with_interval(row["value"], row["ci_low"], row["ci_high"], decimals))
            else:
                cells.append(number(cell["value"].mean(), decimals) if len(cell) else "")
        lines.append([str(name), *cells])
    return _markdown([down, *map(str, columns)], lines)


def comparison(rows: pd.DataFrame, *keys: str, decimals: int = 2) -> str:
    """A table of published numbers and ours, from rows of the table `reproduction`, by columns that tell them apart.

    The spread of ours is the standard deviation over seeds.
    """
    later = rows["published_later"].notna().any()
    titles = [*keys, "published", *(["later run"] if later else []), "ours", "tolerance", "within"]
    lines = []
    for row in rows.to_dict("records"):
        cells = ["" if pd.isna(row[key]) else str(row[key]) for key in keys]
        cells.append(_with_interval(row["published"], row["published_low"], row["published_high"], decimals))
        cells += [number(row["published_later"], decimals)] if later else []
        spread = "" if pd.isna(row["ours_spread"]) else f" ± {number(row['ours_spread'], decimals)}"
        cells += [number(row["ours"], decimals) + spread, number(row["tolerance"], decimals)]
        cells.append("not judged" if pd.isna(row["within"]) else "yes" if row["within"] else "**no**")
        lines.append(cells)
    return _markdown([title.replace("_", " ") for title in titles], lines)


def _check_column(frame: pd.DataFrame, table: str, column: str) -> None:
    if column not in frame:
        raise PlumblineError(f"table '{table}' has no column '{column}'; {nearest(column, list(frame.columns))}")


def _keys(keys: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value!r}" for key, value in keys.items()) or "any value"


def fill_page(template: Path, folder: Path | None = None, into: Path | None = None) -> str:
    """The page of a template, with numbers of the recorded run in its folder or of another one.

    `recorded(NAME)` is a run in a folder next to the template or next to its folder; a template without its own run has
    only these. Pictures are drawn next to the file `into`, and named after the template's folder.
    """
    home = folder or template.parent

    def recorded(name: str) -> RecordedRun:
        return RecordedRun((home if (home / name).is_dir() else home.resolve().parent) / name)

    def picture(kind: str, rows: pd.DataFrame, title: str, suffix: str = "") -> str:
        if kind not in PICTURES:
            raise PlumblineError(f"there is no picture '{kind}'; {nearest(kind, list(PICTURES))}")
        name = f"{template.resolve().parent.name}-{kind}{suffix and f'-{suffix}'}.png"
        if into:
            style.save(PICTURES[kind](rows, title), into.parent / IMAGES / name)
        return f"![{title}]({IMAGES}/{name})"

    environment = Environment(
        loader=FileSystemLoader(template.parent), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = number
    environment.globals.update(
        recorded=recorded,
        smallest_seen=smallest_seen,
        picture=picture,
        grid=grid,
        comparison=comparison,
        counts=counts,
    )
    if folder or not any(home.glob("*/tables")):
        run = RecordedRun(home)
        environment.globals.update(rows=run.rows, value=run.value, interval=run.interval, verdict=run.verdict)
        if (run.folder / MANIFEST).is_file():
            environment.globals["manifest"] = run.manifest
    try:
        page = environment.get_template(template.name).render()
    except (PlumblineError, TemplateError, LookupError, TypeError, ValueError, AttributeError) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(template)]
        line = lines[-1] if lines else getattr(error, "lineno", None)
        said = f"there is no {error}" if isinstance(error, LookupError) else error
        raise PlumblineError(f"{template}{f', line {line}' if line else ''}: {said}") from error
    return f"{WRITTEN} {template.as_posix()}`; change that file. -->\n\n{_wrapped(page)}\n"


def write_page(page: str, file: Path) -> None:
    """Write a page to a new file, or over a page that was written so."""
    if file.exists() and not (
        file.is_file() and file.read_text(encoding="utf-8", errors="replace").startswith(WRITTEN)
    ):
        raise PlumblineError(f"'{file}' exists and was not written by `plumbline fill`; give another file.")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, page)


def _wrapped(page: str) -> str:
    """A page whose paragraphs and list items have lines of at most WIDTH characters, as expressions change lengths."""
    blocks = []
    for block in re.split(r"\n{2,}", page.strip()):
        # Headings, tables, code, images and comments stay as they are.
        if not block.startswith(("#", "|", "    ", "!", "<", "`" * 3)):
            items = [" ".join(item.split()) for item in re.split(r"\n(?=- )", block)]
            block = "\n".join(_WRAP_ITEM.fill(item) if item.startswith("- ") else _WRAP.fill(item) for item in items)
        blocks.append(block)
    return "\n\n".join(blocks)
