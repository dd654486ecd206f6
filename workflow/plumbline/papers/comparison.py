"""Overviews of published numbers and ours: all of them, and per study the number within tolerance."""

from pathlib import Path
from typing import Any

import pandas as pd

from plumbline.errors import PlumblineError
from plumbline.papers import paper
from plumbline.papers.schemas import REPRODUCTION
from plumbline.protocols.agreement.page import class_name
from plumbline.report.tables import DASH, Table, TableCell, named, number, numeric, without_categories
from plumbline.store import read_table

METRIC_LABELS = {
    "train_size": "training texts",
    "validation_size": "validation texts",
    "test_size": "test texts",
    "vocab_size": "vocabulary size",
    "avg_length": "mean length in words",
    "test_F1": "F1 on test",
    "test_accuracy": "accuracy on test",
    "test_micro_F1": "micro F1 on test",
    "validation_accuracy": "accuracy on dev",
    "train_minutes": "training minutes",
    "kendall_tau": "mean τ",
    "sig_frac_p05": "fraction with p ≤ .05",
    "train_avg_length": "mean length of training texts",
    "test_avg_length": "mean length of test texts",
    "sequence_length": "mean length in words",
    "base_F1": "F1 of the base model on test",
    "epoch": "the adversary's epoch",
    "adv_F1": "the adversary's F1 on test",
    "TVD": "TVD of outputs",
    "JSD": "JSD of attention",
    "attributed_correlating": "importance on correlating words",
    "attributed_non-correlating": "importance on non-correlating words",
    "attributed_other": "importance on other words",
}
# Numbers about the data alone, which are counted separately from results.
COUNTS = (*paper.SIZES, "vocab_size")
LENGTHS = ("avg_length", "train_avg_length", "test_avg_length", "sequence_length")
SIZES = (*COUNTS, *LENGTHS)
DECIMALS = dict.fromkeys((*COUNTS, "epoch"), 0) | dict.fromkeys((*LENGTHS, "train_minutes"), 1)
DECIMALS |= dict.fromkeys(("base_F1", "adv_F1", "TVD", "JSD", "AtteFa"), 3)
# Tolerances that the inline axis spans on either side.
SPAN = 3
NUMBERS = ("published", "later run", "ours", "difference", "tolerance")


def reproduction_overview(reproduction: pd.DataFrame, classes: dict[str, list[str]]) -> Table:
    """Every published number with a counterpart in the study, except those of single seeds."""
    shown = without_categories(_shown(reproduction)).to_dict("records")
    notes = list(dict.fromkeys(note for row in shown for note in _notes(row)))
    rows = [_cells(row, classes.get(row["dataset"], []), notes) for row in shown]
    has_later = any(row["later run"].sort is not None for row in rows)
    columns = [title for title in (rows[0] if rows else []) if has_later or title != "later run"]
    caption = (
        "Published numbers and ours, ± standard deviation over seeds or, in brackets, intervals. The mark shows the "
        "difference in units of the tolerance; the band is one tolerance wide on either side."
    )
    if has_later:
        caption += " The later run is one that the authors published with their code after the paper."
    if left_out := len(reproduction) - len(shown):
        caption += f" The {number(left_out, 0)} numbers of single seeds are only in the table's files."
    numbers = frozenset(i for i, title in enumerate(columns) if title in NUMBERS)
    return Table(caption, columns, [[row[title] for title in columns] for row in rows], numbers, notes)


def paper_overview(reproduction: pd.DataFrame) -> Table:
    """A row per paper: how many of its numbers the study has, and how many of ours are within tolerance."""
    rows = []
    for study, group in without_categories(_shown(reproduction)).groupby("study", sort=False):
        results, data = _results_and_sizes(group)
        judged = results.dropna().astype(bool)
        share = float(judged.mean()) if len(judged) else None
        rows.append(
            [
                TableCell(str(study)),
                numeric(len(judged), 0),
                numeric(judged.sum(), 0),
                TableCell(DASH if share is None else f"{number(100 * share, 0)} %", share, tint=share),
                numeric(results.isna().sum(), 0),
                TableCell(
                    f"{data.dropna().astype(bool).sum()} of {data.notna().sum()}" if data.notna().any() else DASH
                ),
            ]
        )
    caption = (
        "Published numbers that this study also computes, by paper. Sizes of datasets are counted separately, as they "
        "are not results. In the table of all numbers, a note explains why a number is not judged."
    )
    columns = ["study", "results judged", "within tolerance", "share", "not judged", "sizes of data within"]
    return Table(caption, columns, rows, frozenset(range(1, 6)))


def counts(reproduction: pd.DataFrame) -> tuple[int, int]:
    """How many published results are judged, and how many of ours are within tolerance; sizes of data do not count."""
    judged = _results_and_sizes(_shown(reproduction))[0].dropna().astype(bool)
    return len(judged), int(judged.sum())


def _results_and_sizes(rows: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Whether results, and sizes of datasets, are within tolerance."""
    sizes = rows["metric"].isin(SIZES)
    return rows[~sizes]["within"], rows[sizes]["within"]


def _shown(reproduction: pd.DataFrame) -> pd.DataFrame:
    """The rows that the report shows: all except those of single seeds, which are not judged."""
    return reproduction[reproduction["seed"].isna()]


def _notes(row: dict[Any, Any]) -> list[str]:
    """The notes of a row, which the table `reproduction` joins by semicolons."""
    return row["note"].split("; ") if isinstance(row["note"], str) and row["note"] else []


def nan_to_none(row: dict[Any, Any]) -> dict[str, Any]:
    """A row with None for every missing value."""
    return {key: None if not isinstance(value, str) and pd.isna(value) else value for key, value in row.items()}


def quantity(row: dict[str, Any]) -> str:
    """The label of a published number: its metric, measures, and the split that selected the epoch."""
    parts = [METRIC_LABELS.get(row["metric"], row["metric"].replace("_", " "))]
    parts.append(" and ".join(row[key] for key in ("measure_a", "measure_b") if row[key]))
    parts.append(f"selected on {row['selected_on']}" if row.get("selected_on") else "")
    return ", ".join(filter(None, parts))


def _cells(row: dict[Any, Any], classes: list[str], notes: list[str]) -> dict[str, TableCell]:
    """The cells of a row by column title."""
    known = nan_to_none(row)
    decimals = DECIMALS.get(known["metric"], 2)
    difference = None if known["ours"] is None else known["ours"] - known["published"]
    at = None
    if difference is not None and known["tolerance"]:
        at = min(1.0, max(0.0, 0.5 + difference / known["tolerance"] / (2 * SPAN)))
    ends = known["published_low"], known["published_high"]
    class_ = known["predicted_class"]
    return {
        "study": TableCell(known["study"]),
        "about": TableCell("data" if known["metric"] in SIZES else "results"),
        "dataset": TableCell(named(known["dataset"], known.get("variant") or "plain")),
        "model": TableCell(known["model"] or DASH),
        "quantity": TableCell(quantity(known)),
        "class": TableCell(DASH if class_ is None else class_name(classes, class_)),
        "published": with_spread(known["published"], known["published_spread"], decimals, ends),
        "later run": numeric(known["published_later"], decimals),
        # A single seed has no spread.
        "ours": with_spread(known["ours"], known["ours_spread"] if known["n_seeds"] != 1 else None, decimals),
        # One digit more than the numbers, to show by how little a difference exceeds its tolerance.
        "difference": TableCell(number(difference, decimals + 1 if decimals else 0), difference, at=at),
        "tolerance": numeric(known["tolerance"], decimals),
        "verdict": _verdict(known["within"]),
        "notes": TableCell(", ".join(str(notes.index(note) + 1) for note in _notes(row)), mark="faint"),
    }


def with_spread(
    value: float | None, spread: float | None, decimals: int, ends: tuple[float | None, ...] = (None,)
) -> TableCell:
    """A number with its spread or, without one, its interval if it has one."""
    text = number(value, decimals)
    if spread is not None:
        text = f"{text} ± {number(spread, decimals)}"
    elif None not in ends:
        text = f"{text} [{', '.join(number(end, decimals) for end in ends)}]"
    return TableCell(text, value)


def _verdict(within: bool | None) -> TableCell:
    if within is None:
        return TableCell("not judged", "2", "faint")
    return TableCell("✓ within", "0", "good") if within else TableCell("✗ outside", "1", "bad")


def verdict(reproduction: pd.DataFrame) -> str:
    """The comparison in one or two sentences: results, and sizes of datasets."""
    shown = _shown(reproduction)
    if shown.empty:
        return "plumbline has no published number about this study's datasets, so there is nothing to compare."
    parts = zip(("results", "sizes of datasets"), _results_and_sizes(shown), strict=True)
    return " ".join(f"Published {what}: {_counted(within)}." for what, within in parts if len(within))


def _counted(within: pd.Series) -> str:
    """How many of some published numbers are within tolerance."""
    judged, others = within.dropna().astype(bool), within.isna().sum()
    parts = [f"{number(judged.sum(), 0)} of {number(len(judged), 0)} within tolerance"] if len(judged) else []
    return ", ".join([*parts, *([f"{number(others, 0)} not judged"] if others else [])])


def stored_verdict(results: Path) -> list[str]:
    """The verdict on the stored table `reproduction`; empty if the table is missing, unreadable or judges nothing."""
    try:
        reproduction = read_table(results / "tables/reproduction.parquet", REPRODUCTION)
    except (OSError, PlumblineError):
        return []
    frame = reproduction.to_pandas()
    return [verdict(frame)] if frame["within"].notna().any() else []
