"""Tables of the report: the text and sort key of each cell, without markup."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from plumbline.tables.chance import AT_CHANCE

DASH = "–"
# A table with more rows can be searched, and filtered by those of these columns that have repeated values.
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
    """One cell. `sort` replaces the text in sorting; `at ± half` is an interval on a small axis from 0 to 1; `title` is
    its tooltip; `tint` is the strength of its background, from 0 to 1."""

    text: str
    sort: float | str | None = None
    mark: Literal["", "good", "bad", "faint"] = ""
    at: float | None = None
    half: float = 0.0
    title: str = ""
    tint: float | None = None


@dataclass(frozen=True)
class Table:
    """A table with a caption. `numbers` are the right-aligned columns; `notes` are printed below."""

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
        """The columns to filter rows by."""
        return [
            i
            for i, title in enumerate(self.columns)
            if self.long and title in FILTERED and 1 < len({row[i].text for row in self.rows}) < len(self.rows)
        ]


def without_categories(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame without categorical columns, whose groups would include pairs that do not occur."""
    return frame.astype({c: object for c in frame if isinstance(frame[c].dtype, pd.CategoricalDtype)})


def number(value: float | None, decimals: int = 2) -> str:
    """A formatted number: thousands separated, a true minus sign, a dash if missing."""
    if value is None or not np.isfinite(value):
        return DASH
    text = f"{value:,.{decimals}f}".replace(",", "\u202f")
    return text.replace("-", "−") if float(f"{value:.{decimals}f}") else text.replace("-", "")


def numeric(value: float | None, decimals: int = 2) -> TableCell:
    """A cell with one number."""
    return TableCell(number(value, decimals), None if value is None or not np.isfinite(value) else float(value))


def spread(values: pd.Series, decimals: int = 3) -> TableCell:
    """Mean ± standard deviation of one value per seed."""
    known = values.dropna()
    if known.empty:
        return TableCell("undefined", None, "faint")
    mean = numeric(known.mean(), decimals)
    return replace(mean, text=f"{mean.text} ± {number(known.std(ddof=0), decimals)}") if len(known) > 1 else mean


def spread_on_axis(values: pd.Series, largest: float) -> TableCell:
    """Mean ± standard deviation of one value per seed, also drawn on an axis from 0 to the largest value."""
    cell, known = spread(values), values.dropna()
    if known.empty:
        return cell
    return replace(cell, at=float(known.mean()) / largest, half=float(known.std(ddof=0)) / largest)


def performance_overview(performance: pd.DataFrame, split: str = "test") -> Table:
    """Scores of the models on a split: one row per dataset and model, one column per metric."""
    frame = without_categories(performance)
    frame = frame[frame["split"] == split]
    metrics = sorted(frame["metric"].unique())
    rows = []
    for names, group in by_cell(frame):
        scores = [_score(group[group["metric"] == metric]) for metric in metrics]
        rows.append([*names, numeric(group["seed"].nunique(), 0), *scores])
    caption = (
        f"Scores on the {split} split, mean ± standard deviation over seeds; higher is better. “above chance” is the "
        "lower end of the 95\u00a0% interval of the accuracy, rescaled so that 0 is guessing and 1 is always right."
    )
    if (frame["status"] == AT_CHANCE).any():
        caption += (
            " Models marked “at chance” are hardly better than guessing, so their explanations mean nothing: all other "
            "tables, the findings and the scorecard exclude them."
        )
    titles = [metric.replace("_", " ") for metric in metrics]
    return Table(caption, ["dataset", "model", "seeds", *titles], rows, frozenset(range(2, 3 + len(metrics))))


def _score(rows: pd.DataFrame) -> TableCell:
    """One metric over seeds, marked if some of the models are at chance."""
    cell, low = spread(rows["value"]), (rows["status"] == AT_CHANCE).sum()
    seeds = "" if low == len(rows) else f", {low} of {len(rows)} seeds"
    return replace(cell, text=f"{cell.text}, at chance{seeds}", mark="bad") if low else cell


def any_table(name: str, frame: pd.DataFrame, most: int = 500) -> Table:
    """Any table as it is, cut to the first `most` rows."""
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
    """A dataset with its variant, unless that is plain."""
    return dataset if variant == "plain" else f"{dataset} ({variant})"


def by_cell(
    frame: pd.DataFrame, *more: str, variant: str = "variant", sort: bool = True
) -> Iterator[tuple[list[TableCell], pd.DataFrame]]:
    """The rows of each dataset, variant and model, and of each value of `more` columns, after the cells that name them:
    one for the dataset with its variant, and one for each other column."""
    for key, group in frame.groupby(["dataset", variant, "model", *more], dropna=False, sort=sort):
        dataset, of_dataset, *names = map(str, key)
        yield [TableCell(named(dataset, of_dataset)), *map(TableCell, names)], group


def of_variant(summary: Mapping[str, Any]) -> str:
    """The variant of a dataset's record."""
    return str(summary.get("manipulation", {}).get("variant", "plain"))


def timings_overview(timings: pd.DataFrame) -> Table:
    """Time and memory of each rule on each device."""
    rows = []
    for cell, group in without_categories(timings[timings["event"].isna()]).groupby(["rule", "device"]):
        seconds, memory = group["seconds"], [group[column].max() for column in ("peak_rss", "peak_gpu")]
        rows.append(
            [
                *map(TableCell, map(str, cell)),
                numeric(len(group), 0),
                *(numeric(value, 1) for value in (seconds.sum(), seconds.median(), seconds.max())),
                numeric(group["startup_seconds"].sum(), 1),
                *(numeric(value, 0) for value in memory),
                numeric(group["rows_per_second"].median(), 1),
            ]
        )
    columns = ["rule", "device", "runs", "seconds, all", "median", "longest", "start-up, all", "memory, MiB"]
    columns += ["GPU memory, MiB", "rows per second"]
    caption = (
        "Time in seconds and memory of each rule. Cheap measures share a job and its start-up, but each counts as a "
        "run. Memory is the maximum of any job; rows per second are the median over runs."
    )
    return Table(caption, columns, rows, frozenset(range(2, 10)))


def jobs_overview(timings: pd.DataFrame) -> Table:
    """All runs, the longest first; the last column has unusual events, if there are any."""
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
    return Table("All runs, the longest first; a row is a text or an image.", columns, rows, frozenset((5, 6, 7, 8)))
