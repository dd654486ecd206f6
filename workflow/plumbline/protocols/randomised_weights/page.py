"""Randomised weights in the report: how far the importances of each measure depend on the weights."""

import pandas as pd
from markupsafe import Markup

from plumbline.protocols.randomised_weights.criteria import weight_dependence
from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.findings import by_measure
from plumbline.report.page import Page, Section, table_of
from plumbline.report.tables import Table, TableCell, by_cell, numeric, spread, spread_on_axis, without_categories


def randomised_weights_overview(randomised_weights: pd.DataFrame) -> Table:
    """A row for each dataset, model and measure, of the cascading stages."""
    frame = without_categories(randomised_weights)
    frame = frame[frame["mode"] == "cascading"].sort_values("depth", kind="stable")
    rows = []
    for names, group in by_cell(frame, "measure"):
        defined = group[group["status"] == "ok"]
        by_depth = [group[group["depth"] == depth] for depth in (1, group["depth"].max())]
        ends = [cell for stage in by_depth for cell in (TableCell(stage["stage"].iloc[0]), spread(stage["kendall"]))]
        dependence = spread_on_axis(defined.groupby("seed")["kendall"].agg(weight_dependence), 1)
        rows.append([*names, *ends, dependence, numeric(group["n"].max(), 0), numeric(group["dropped"].max(), 0)])
    caption = (
        "Kendall τ between the importances of the trained model and those of the model with randomised weights: with "
        "only the first randomised layer, nearest to the output, and with all layers randomised down to the last. Mean "
        "over texts, ± standard deviation over seeds. “dependence” on the weights is 1 minus the mean of |τ| over all "
        "stages, on an axis from 0 to 1: higher is better, and 0 is a measure that ignores the model. “left out” counts"
        " texts with one word or with constant importances."
    )
    columns = ["dataset", "model", "measure", "first layer", "τ", "last layer", "τ", "dependence", "texts", "left out"]
    return Table(caption, columns, rows, frozenset((4, 6, 7, 8, 9)))


def _finding(randomised_weights: pd.DataFrame, left_out: list[str]) -> str:
    rows = without_categories(randomised_weights)
    rows = rows[(rows["mode"] == "cascading") & (rows["status"] == "ok") & ~rows["measure"].isin(left_out)]
    dependence = 1 - rows["kendall"].abs()
    values = by_measure(dependence, rows["measure"])
    return f"Mean dependence on the weights (0: none, 1: full): {values}." if values else ""


@page("randomised-weights", title="Randomised weights", tables=["randomised_weights"], order=80)
def randomised_weights_page(content: Content) -> Page:
    """Do importances change when the model's weights are replaced by random ones?"""
    frames = content.tables
    section = Section(
        "dependence",
        "Dependence on the weights",
        "The test is necessary, not sufficient: a measure that depends on the weights may still be wrong, but one that "
        "does not depend on them cannot explain what the model has learned.",
        {"randomised": table_of(frames, "randomised_weights", randomised_weights_overview)},
        axis="from-zero",
    )
    lead = Markup("The test of Adebayo et al. (2018), <cite>Sanity Checks for Saliency Maps</cite>.")
    return Page([section], lead, _finding(frames["randomised_weights"], [content.random, *content.degraded]))
