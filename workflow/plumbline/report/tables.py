"""The report's tables: what each cell says, what it is sorted by, and nothing about markup."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from plumbline.tables.chance import AT_CHANCE

DASH = "–"
# A table with more rows can be searched, and filtered by those of these columns in which several rows share a word.
LONG = 8
FILTERED = (
    "study",
    "about",
    "quirk",
    "dataset",
    "model",
    "measure",
    "criterion",
    "metric",
    "strategy",
    "verdict",
    "rule",
)


@dataclass(frozen=True)
class TableCell:
    """One cell. `sort` takes the place of the text in sorting; `at ± half` is a place on a small axis from 0 to 1.
    `title` says more to who asks; `tint` is how strongly the cell is coloured, from 0 to 1."""

    text: str
    sort: float | str | None = None
    mark: Literal["", "good", "bad", "faint"] = ""
    at: float | None = None
    half: float = 0.0
    title: str = ""
    tint: float | None = None


@dataclass(frozen=True)
class Table:
    """A table with a caption. `numbers` are the columns that are set to the right, `notes` stand below it."""

    caption: str
    columns: list[str]
    rows: list[list[TableCell]] = field(default_factory=list)
    numbers: frozenset[int] = frozenset()
    notes: list[str] = field(default_factory=list)

    @property
    def long(self) -> bool:
        """Whether it needs filters."""
        return len(self.rows) > LONG

    @property
    def filters(self) -> list[int]:
        """The columns to choose rows by."""
        return [
            i
            for i, title in enumerate(self.columns)
            if self.long and title in FILTERED and 1 < len({row[i].text for row in self.rows}) < len(self.rows)
        ]


def without_categories(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame without categorical columns, which grouping would fill up with pairs that do not occur."""
    return frame.astype({c: object for c in frame if isinstance(frame[c].dtype, pd.CategoricalDtype)})


def number(value: float | None, decimals: int = 2) -> str:
    """A number for people: thousands apart, a true minus sign, a dash for none."""
    if value is None or not np.isfinite(value):
        return DASH
    text = f"{value:,.{decimals}f}".replace(",", "\u202f")
    return text.replace("-", "−") if float(f"{value:.{decimals}f}") else text.replace("-", "")


def numeric(value: float | None, decimals: int = 2) -> TableCell:
    """A cell that holds one number."""
    return TableCell(number(value, decimals), None if value is None or not np.isfinite(value) else float(value))


def spread(values: pd.Series, decimals: int = 3) -> TableCell:
    """Mean ± standard deviation of one value per seed."""
    known = values.dropna()
    if known.empty:
        return TableCell("undefined", None, "faint")
    mean = float(known.mean())
    if len(known) == 1:
        return numeric(mean, decimals)
    return TableCell(f"{number(mean, decimals)} ± {number(float(known.std(ddof=0)), decimals)}", mean)


def placed(values: pd.Series, largest: float) -> TableCell:
    """Mean ± standard deviation of one value per seed, with its place between 0 and the largest value."""
    cell, known = spread(values), values.dropna()
    if known.empty:
        return cell
    return replace(cell, at=float(known.mean()) / largest, half=float(known.std(ddof=0)) / largest)


def performance_overview(performance: pd.DataFrame, split: str = "test") -> Table:
    """How good the models are on a split: one line per dataset and model, one column per metric."""
    here = without_categories(performance)
    here = here[here["split"] == split]
    metrics = sorted(here["metric"].unique())
    rows = []
    for cell, group in here.groupby(["dataset", "variant", "model"]):
        dataset, variant, model = map(str, cell)
        scores = [_score(group[group["metric"] == metric]) for metric in metrics]
        rows.append(
            [TableCell(named(dataset, variant)), TableCell(model), numeric(group["seed"].nunique(), 0), *scores]
        )
    caption = (
        f"Scores on the {split} split, mean ± standard deviation over seeds. “Above chance” is how much of the way "
        "from guessing to always right the accuracy surely covers."
    )
    if (here["status"] == AT_CHANCE).any():
        caption += (
            " Models marked there hardly do better than guessing, so that what explains them says nothing: all other "
            "tables, sentences and the scorecard leave them out."
        )
    titles = [metric.replace("_", " ") for metric in metrics]
    return Table(caption, ["dataset", "model", "seeds", *titles], rows, frozenset(range(2, 3 + len(metrics))))


def _score(rows: pd.DataFrame) -> TableCell:
    """One metric over seeds, marked if some of the models are at chance by it."""
    cell, low = spread(rows["value"]), (rows["status"] == AT_CHANCE).sum()
    of = "" if low == len(rows) else f", {low} of {len(rows)} seeds"
    return replace(cell, text=f"{cell.text}, at chance{of}", mark="bad") if low else cell


def any_table(name: str, frame: pd.DataFrame, most: int = 500) -> Table:
    """A table of which nothing is known, as it stands; of a long one the first rows."""
    shown = without_categories(frame).dropna(axis=1, how="all").head(most)
    numbers = frozenset(i for i, column in enumerate(shown) if pd.api.types.is_numeric_dtype(shown[column]))
    rows = [
        [
            numeric(value, 0 if float(value).is_integer() else 3) if i in numbers else TableCell(str(value))
            for i, value in enumerate(line)
        ]
        for line in shown.itertuples(index=False)
    ]
    caption = f"The table {name}" + (f", its first {most} of {len(frame)} rows." if len(frame) > most else ".")
    return Table(caption, [str(column).replace("_", " ") for column in shown], rows, numbers)


def named(dataset: str, variant: str) -> str:
    """A dataset with its variant, which is left out where nothing was changed."""
    return dataset if variant == "plain" else f"{dataset} ({variant})"


def of_variant(summary: Mapping[str, Any]) -> str:
    """The variant that a dataset's record is about."""
    return str(summary.get("manipulation", {}).get("variant", "plain"))


def timings_overview(timings: pd.DataFrame) -> Table:
    """What the work of each rule cost together."""
    rows = []
    for cell, group in without_categories(timings[timings["event"].isna()]).groupby(["rule", "device"]):
        rule, device = map(str, cell)
        rows.append(
            [
                TableCell(rule),
                TableCell(device),
                numeric(len(group), 0),
                numeric(group["seconds"].sum(), 1),
                numeric(group["seconds"].median(), 1),
                numeric(group["seconds"].max(), 1),
                numeric(group["startup_seconds"].sum(), 1),
                numeric(group["peak_rss"].max(), 0),
                numeric(group["peak_gpu"].max(), 0),
                numeric(group["rows_per_second"].median(), 1),
            ]
        )
    columns = ["rule", "device", "runs", "seconds, all", "median", "longest", "start-up, all", "memory, MiB"]
    columns += ["GPU memory, MiB", "rows per second"]
    return Table(
        "What each rule took. Cheap measures share a job, and its start-up; each counts as a run. Memory is the "
        "highest of any job.",
        columns,
        rows,
        frozenset(range(2, 10)),
    )


def jobs_overview(timings: pd.DataFrame) -> Table:
    """All heavy work, the longest first; last what happened out of the ordinary."""
    keys = ["rule", "dataset", "model", "seeds", "measure"]
    eventful = timings["event"].notna().any()
    frame = without_categories(timings).sort_values(["seconds", *keys], ascending=[False] + [True] * 5, kind="stable")
    rows = [
        [
            *(TableCell("" if pd.isna(line[key]) else str(line[key])) for key in keys),
            numeric(line["seconds"], 1),
            numeric(line["peak_rss"], 0),
            numeric(line["rows_per_second"], 1),
            numeric(line["token_budget"], 0),
            *([TableCell("" if pd.isna(line["event"]) else str(line["event"]))] if eventful else []),
        ]
        for line in frame.to_dict("records")
    ]
    columns = [*keys, "seconds", "memory, MiB", "rows per second", "token budget", *(["event"] if eventful else [])]
    return Table("All runs, the longest first.", columns, rows, frozenset((5, 6, 7, 8)))
