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
        "The share of importance on the words or pixels that determine the label (the truth), mean ± standard "
        "deviation over models (seeds, variants), on an axis from 0 to 1; the truth's share of all words or pixels, "
        "which is the expectation of an uninformed measure; the share of importance relative to it, where 0 is that "
        "expectation and 1 all importance, whatever the size of the truth; the share of the truth among as many top "
        "words or pixels; and the AUC, the probability that one of the truth ranks above another. Where any word of "
        "the truth suffices, the best one counts. Higher is better for "
        "models that use the truth: a model that ignores it reaches such an accuracy with a probability below 0.001. "
        "Undefined are maps without any importance."
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
        "The words that rationale models select, mean ± standard deviation over seeds: precision is the share of "
        "selected words that determine the label, recall the share of these that is selected, each with the best value "
        "that as many selected words could reach."
    )
    columns = ["dataset", "model", "target", "selected", "precision", "at best", "recall", "at best", "accuracy"]
    return Table(caption, columns, rows, frozenset(range(2, 9)))


def _finding(ground_truth: pd.DataFrame, random: str) -> str:
    rows = without_categories(ground_truth)
    rows = rows[rows["truth"] & (rows["class"] == "all") & (rows["status"] == "ok") & (rows["measure"] != random)]
    scores = by_measure(rows["above_region"], rows["measure"])
    return f"Importance on the truth, 0 as by chance, 1 all: {scores}." if scores else ""


@page("truth", title="Ground truth", tables=["ground_truth", "rationales", "trace"], order=60)
def truth_page(content: Content) -> Page:
    """Does importance fall on the features that determine the label, on data where these are known?"""
    frames = content.tables
    sections = [
        Section(
            "ground-truth",
            "Ground truth",
            "Datasets were modified so that labels depend on inserted words or pixels and nothing else. An accurate "
            "model uses these, and a faithful measure assigns its importance to them.",
            {"truth": table_of(frames, "ground_truth", truth_overview)},
            axis="from-zero",
        ),
        Section(
            "selected",
            "Rationales",
            "Do models that classify by selected words alone select the words that determine the label?",
            {"rationales": table_of(frames, "rationales", rationales_overview)},
        ),
    ]
    lead = Markup(
        "The question of Zhou et al. (2022), <cite>Do Feature Attribution Methods Correctly Attribute Features?</cite>"
    )
    return Page(sections, lead, _finding(frames["ground_truth"], content.random) if "ground_truth" in frames else "")
