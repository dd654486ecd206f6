"""The ground-truth page: importance on the known truth by measure, and the selections of rationale models."""

import pandas as pd
from markupsafe import Markup

from plumbline.figures.conventions import ALPHA
from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.findings import by_measure
from plumbline.report.page import Page, Section, table_of
from plumbline.report.tables import Table, TableCell, by_cell, numeric, spread, spread_on_axis, without_categories


def truth_overview(ground_truth: pd.DataFrame) -> Table:
    """A row for each dataset, manipulation, model and measure; a manipulation's variants are averaged."""
    frame = without_categories(ground_truth)
    frame = frame[frame["truth"] & (frame["class"] == "all")]
    rows = []
    for names, group in by_cell(frame, "measure", variant="manipulation"):
        defined = group[group["status"] == "ok"]
        sure = group["chance_bound"] < ALPHA
        rows.append(
            [
                *names,
                spread_on_axis(defined["attributed_fraction"], 1),
                numeric(defined["region_fraction"].mean(), 3),
                spread(defined["above_region"]),
                spread(defined["found"]),
                spread(group["accuracy"]),
                TableCell(f"{sure.sum()} of {len(group)}", sure.mean()),
                spread(defined["auc"]),
                numeric(group["undefined"].sum(), 0),
            ]
        )
    caption = (
        "The truth is the words or pixels that determine the label. Means ± standard deviation over models (seeds and "
        "variants); higher is better. “importance on it” is the share of importance on the truth, on an axis from 0 to "
        "1; “its share” is the truth's share of all words or pixels, which equal importances give; “relative” is the "
        "share of importance rescaled so that 0 is its share and 1 all importance. “found at the top” is the share of "
        "the truth among as many top-ranked words or pixels; “AUC” is the probability that a word or pixel of the truth"
        " ranks above another. Where any word of the truth suffices, the best one counts. “models that use it” have an "
        "accuracy that a model without the truth reaches with a probability below 0.001; values of other models say "
        "little. “undefined” counts instances without any importance."
    )
    columns = ["dataset", "model", "measure", "importance on it", "its share", "relative", "found at the top"]
    columns += ["accuracy", "models that use it", "AUC", "undefined"]
    return Table(caption, columns, rows, frozenset(range(3, 11)))


def rationales_overview(rationales: pd.DataFrame) -> Table:
    """A row for each rationale model, with the optimum at its selection rate."""
    rows = []
    shares = ["selection_rate", "precision", "optimum_precision", "recall", "optimum_recall", "accuracy"]
    for names, group in by_cell(without_categories(rationales)):
        target = numeric(group["target_rate"].mean(), 3)
        rows.append([*names, target, *(spread(group[share]) for share in shares)])
    caption = (
        "The words that rationale models select, mean ± standard deviation over seeds; higher precision and recall are "
        "better. Precision is the share of selected words that determine the label, recall the share of these words "
        "that is selected; “at best” is the best value that as many selected words can reach."
    )
    columns = ["dataset", "model", "target", "selected", "precision", "at best", "recall", "at best", "accuracy"]
    return Table(caption, columns, rows, frozenset(range(2, 9)))


def _finding(ground_truth: pd.DataFrame, random: str) -> str:
    rows = without_categories(ground_truth)
    rows = rows[rows["truth"] & (rows["class"] == "all") & (rows["status"] == "ok") & (rows["measure"] != random)]
    scores = by_measure(rows["above_region"], rows["measure"])
    return f"Mean importance on the truth (0: as equal importances, 1: all of it): {scores}." if scores else ""


@page("truth", title="Ground truth", tables=["ground_truth", "rationales", "trace"], order=60)
def truth_page(content: Content) -> Page:
    """Where the features that determine the label are known, do measures give importance to them?"""
    frames = content.tables
    sections = [
        Section(
            "ground-truth",
            "Ground truth",
            "Datasets were modified so that the label follows from known words or pixels. An accurate model uses "
            "these, and a faithful measure gives them the importance.",
            {"truth": table_of(frames, "ground_truth", truth_overview)},
            axis="from-zero",
        ),
        Section(
            "selected",
            "Rationales",
            "Rationale models classify a text by selected words only. Do they select the words that determine the "
            "label?",
            {"rationales": table_of(frames, "rationales", rationales_overview)},
        ),
    ]
    lead = Markup(
        "The question of Zhou et al. (2022), <cite>Do Feature Attribution Methods Correctly Attribute Features?</cite>"
    )
    return Page(sections, lead, _finding(frames["ground_truth"], content.random) if "ground_truth" in frames else "")
