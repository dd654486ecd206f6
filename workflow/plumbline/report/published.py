"""Published numbers beside ours on the page."""

from typing import Any

import pandas as pd

from plumbline.report.agreement import class_name
from plumbline.report.tables import DASH, Cell, Table, named, number, numeric, plain

WORDS = {
    "train_size": "training texts",
    "validation_size": "validation texts",
    "test_size": "test texts",
    "vocab_size": "words in the vocabulary",
    "avg_length": "mean length in words",
    "test_F1": "F1 on test",
    "test_accuracy": "accuracy on test",
    "test_micro_F1": "micro F1 on test",
    "validation_accuracy": "accuracy on dev",
    "train_minutes": "minutes of training",
    "kendall_tau": "mean τ",
    "sig_frac_p05": "share with p ≤ .05",
    "train_avg_length": "mean length of training texts",
    "test_avg_length": "mean length of test texts",
    "base_F1": "F1 of the base model on test",
    "epoch": "the adversary's epoch",
    "adv_F1": "the adversary's F1 on test",
    "TVD": "TVD of outputs",
    "JSD": "JSD of attention",
}
DECIMALS = dict.fromkeys(("train_size", "validation_size", "test_size", "vocab_size", "epoch"), 0)
DECIMALS |= dict.fromkeys(("avg_length", "train_avg_length", "test_avg_length", "train_minutes"), 1)
DECIMALS |= dict.fromkeys(("base_F1", "adv_F1", "TVD", "JSD", "AtteFa"), 3)
# How many tolerances the small axis spans to either side.
SPAN = 3


def reproduction_table(reproduction: pd.DataFrame, classes: dict[str, list[str]]) -> Table:
    """Every published number that the study has a counterpart for, but those of single seeds."""
    lines = plain(_shown(reproduction)).to_dict("records")
    notes = list(dict.fromkeys(note for line in lines for note in _notes(line)))
    rows = [_row(line, classes.get(line["dataset"], []), notes) for line in lines]
    columns = [
        "dataset",
        "model",
        "quantity",
        "class",
        "published",
        "later run",
        "ours",
        "difference",
        "tolerance",
        "verdict",
        "notes",
    ]
    caption = (
        "Published numbers and ours. The mark shows the difference in tolerances; the band is one to either side. The "
        "later run is one that the authors themselves published with their code after the paper."
    )
    if left_out := len(reproduction) - len(lines):
        caption += f" {number(left_out, 0)} numbers of single seeds are in the files of the table, not here."
    numbers = range(4, 9)
    if len({line["study"] for line in lines}) > 1:
        columns = ["study", *columns]
        rows = [[Cell(line["study"]), *row] for line, row in zip(lines, rows, strict=True)]
        numbers = range(5, 10)
    return Table(caption, columns, rows, frozenset(numbers), notes)


def _shown(reproduction: pd.DataFrame) -> pd.DataFrame:
    """The rows that the page tells of; the many of single seeds, which are not judged, are in the table's files."""
    return reproduction[reproduction["seed"].isna()]


def _notes(line: dict[Any, Any]) -> list[str]:
    """The single notes of a line, which the table `reproduction` joins by semicolons."""
    return line["note"].split("; ") if isinstance(line["note"], str) and line["note"] else []


def _row(line: dict[Any, Any], classes: list[str], notes: list[str]) -> list[Cell]:
    known: dict[str, Any] = {
        key: None if not isinstance(value, str) and pd.isna(value) else value for key, value in line.items()
    }
    decimals = DECIMALS.get(known["metric"], 2)
    quantity = WORDS.get(known["metric"], known["metric"].replace("_", " "))
    if known["measure_a"] and known["measure_b"]:
        quantity = f"{quantity}, {known['measure_a']} and {known['measure_b']}"
    if known["selected_on"]:
        quantity = f"{quantity}, chosen on {known['selected_on']}"
    difference = None if known["ours"] is None else known["ours"] - known["published"]
    at = None
    if difference is not None and known["tolerance"]:
        at = min(1.0, max(0.0, 0.5 + difference / known["tolerance"] / (2 * SPAN)))
    return [
        Cell(named(known["dataset"], known.get("variant") or "plain")),
        Cell(known["model"] or DASH),
        Cell(quantity),
        Cell(class_name(classes, known["predicted_class"]) if known["predicted_class"] is not None else DASH),
        _with_spread(known["published"], known["published_spread"], decimals),
        numeric(known["published_later"], decimals),
        _with_spread(known["ours"], known["ours_spread"], decimals),
        # One digit more than the numbers have, so that it can be told from a tolerance that it misses by little.
        Cell(number(difference, decimals + 1 if decimals else 0), difference, at=at),
        numeric(known["tolerance"], decimals),
        _verdict(known["within"]),
        Cell(", ".join(str(notes.index(note) + 1) for note in _notes(line)), mark="faint"),
    ]


def _with_spread(value: float | None, spread: float | None, decimals: int) -> Cell:
    text = number(value, decimals) if spread is None else f"{number(value, decimals)} ± {number(spread, decimals)}"
    return Cell(text, value)


def _verdict(within: bool | None) -> Cell:
    if within is None:
        return Cell("not judged", "2", "faint")
    return Cell("✓ within", "0", "good") if within else Cell("✗ outside", "1", "bad")


def verdict(reproduction: pd.DataFrame) -> str:
    """The comparison in one sentence."""
    shown = _shown(reproduction)
    if shown.empty:
        return (
            "No published number that plumbline holds is about this study's datasets, so there is nothing to compare."
        )
    judged = shown["within"].dropna()
    others = len(shown) - len(judged)
    if judged.empty:
        return f"None of {others} published numbers about this study's datasets can be judged; the notes say why."
    told = f"{int(judged.astype(bool).sum())} of {len(judged)} cells within tolerance"
    return f"{told}; {others} more could not be judged." if others else f"{told}."
