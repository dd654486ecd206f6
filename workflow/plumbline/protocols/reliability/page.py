"""Reliability in the report: the test-retest correlation of measures with random draws."""

import pandas as pd

from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.findings import by_measure
from plumbline.report.page import Page, Section, table_of
from plumbline.report.tables import Table, by_cell, numeric, spread, spread_on_axis, without_categories


def reliability_overview(reliability: pd.DataFrame) -> Table:
    """A row for each dataset, model and measure with draws."""
    frame = without_categories(reliability)
    rows = []
    for names, group in by_cell(frame[frame["stochastic"]], "measure"):
        correlations = spread_on_axis(group["kendall"], 1), spread(group["spearman"]), spread(group["kendall_std"])
        rows.append([*names, *correlations, *(numeric(group[count].max(), 0) for count in ("n", "dropped"))])
    fixed = sorted(set(frame[~frame["stochastic"]]["measure"]))
    caption = (
        "Kendall τ and Spearman ρ between two runs of a measure on the same model with different random draws: mean "
        "over texts, ± standard deviation over seeds; higher is more reliable. τ is on an axis from 0 to 1; “deviation "
        "of τ” is its standard deviation over texts. “left out” counts texts with one word or with constant "
        "importances."
    )
    if fixed:
        caption += f" Measures without random draws, which have τ = 1: {', '.join(fixed)}."
    columns = ["dataset", "model", "measure", "τ", "ρ", "deviation of τ", "texts", "left out"]
    return Table(caption, columns, rows, frozenset(range(3, len(columns))))


def _finding(reliability: pd.DataFrame, left_out: list[str]) -> str:
    rows = without_categories(reliability)
    rows = rows[rows["stochastic"] & (rows["status"] == "ok") & ~rows["measure"].isin(left_out)]
    values = by_measure(rows["kendall"], rows["measure"])
    return f"Mean τ between two runs with different random draws: {values}." if values else ""


@page("reliability", title="Reliability", tables=["reliability"], order=90)
def reliability_page(content: Content) -> Page:
    """Does a measure with random draws rank the words in the same order when it is run again?"""
    frames = content.tables
    section = Section(
        "retest",
        "Test and retest",
        "Reliability is not faithfulness: a measure may be reliable and wrong. Two noisy measures can hardly agree "
        "more than the geometric mean of their reliabilities.",
        {"reliability": table_of(frames, "reliability", reliability_overview)},
        axis="from-zero",
    )
    return Page([section], finding=_finding(frames["reliability"], [content.random, *content.degraded]))
