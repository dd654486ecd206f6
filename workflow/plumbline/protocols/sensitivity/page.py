"""The report's page of sensitivity: which permuted shares of a measure's scores each criterion sees."""

import pandas as pd

from plumbline.protocols.criteria import ARROWS
from plumbline.protocols.sensitivity.table import ENOUGH, smallest_seen
from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.page import Page, Section, table_of
from plumbline.report.tables import DASH, Table, TableCell, by_cell, numeric, without_categories


def sensitivity_overview(sensitivity: pd.DataFrame) -> Table:
    """A row for each dataset, model, measure and criterion."""
    frame = without_categories(sensitivity)
    frame = frame[frame["status"] == "ok"]
    counts = sorted(frame.dropna(subset="power")["n_seeds"].unique())
    rows = []
    for names, ladder in by_cell(frame, "measure", "criterion", sort=False):
        *cell, criterion = names
        arrow, smallest = ARROWS[ladder["direction"].iloc[0]], smallest_seen(ladder, [])
        seen = [_share(smallest[count]) if count in smallest.index else TableCell(DASH) for count in counts]
        whole = ladder.sort_values("share").iloc[-1]
        rows.append(
            [
                *cell,
                TableCell(f"{criterion.text} {arrow}"),
                numeric(whole["tau"]),
                numeric(whole["difference"], 3),
                *seen,
            ]
        )
    caption = (
        "“τ” is the rank correlation between the permuted share and how much worse the value is: 1 if every larger "
        "share is worse. “worse by” is the difference at the largest share. Columns of seeds have the smallest share "
        "that the criterion detects, as it does all larger ones: a one-sided paired Student test at 5\u00a0% finds it "
        f"worse in {100 * ENOUGH:g}\u00a0% of the sets of that many seeds; with all seeds there is one set. Smaller is "
        "better."
    )
    columns = ["dataset", "model", "measure", "criterion", "τ", "worse by", *(f"{count} seeds" for count in counts)]
    return Table(caption, columns, rows, frozenset(range(4, len(columns))))


def _share(share: float) -> TableCell:
    return TableCell("none", 2.0, "faint") if pd.isna(share) else TableCell(f"{share:g}", share)


def _finding(sensitivity: pd.DataFrame) -> str:
    rows = without_categories(sensitivity)
    rows = rows[(rows["status"] == "ok") & (rows["share"] > 0)]
    if rows.empty:
        return ""
    in_order = rows.groupby("criterion")["in_order"].all()
    sentence = f"{in_order.sum()} of {len(in_order)} criteria rank all permuted shares in order"
    powers = rows.dropna(subset="power")
    if powers.empty:
        return f"{sentence}."
    smallest, count = rows["share"].min(), powers["n_seeds"].max()
    seen = smallest_seen(powers[powers["n_seeds"] == count], ["criterion"]) == smallest
    return f"{sentence}; with {count} seeds {seen.sum()} of {len(seen)} detect a permuted share of {smallest:g}."


@page("sensitivity", title="Sensitivity", group="", tables=["sensitivity"], order=15)
def sensitivity_page(content: Content) -> Page:
    """Does a criterion detect that a measure has been made worse on purpose?"""
    section = Section(
        "ladders",
        "What each criterion detects",
        "A random share of a measure's scores is permuted within each text, which is known to make the measure worse. "
        "A criterion that does not detect this cannot distinguish measures that differ as much. Detection is "
        "necessary, not sufficient: a criterion may detect random scores and still prefer the wrong measure.",
        {"sensitivity": table_of(content.tables, "sensitivity", sensitivity_overview)},
    )
    return Page([section], finding=_finding(content.tables["sensitivity"]))
