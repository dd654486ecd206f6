"""Known truth on the page: how much of it each measure finds, and what rationale models select."""

import pandas as pd
from markupsafe import Markup

from plumbline.figures.conventions import ALPHA
from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.findings import by_measure
from plumbline.report.page import Page, Section, table_of
from plumbline.report.tables import Table, TableCell, named, numeric, spread, spread_on_axis, without_categories


def truth_overview(ground_truth: pd.DataFrame) -> Table:
    """A line for each measure of a dataset, manipulation and model; variants of one manipulation count together."""
    frame = without_categories(ground_truth)
    frame = frame[frame["truth"] & (frame["class"] == "all")]
    rows = []
    for cell, group in frame.groupby(["dataset", "manipulation", "model", "measure"]):
        dataset, manipulation, model, measure = map(str, cell)
        known = group[group["status"] == "ok"]
        rows.append(
            [
                TableCell(named(dataset, manipulation)),
                TableCell(model),
                TableCell(measure),
                spread_on_axis(known["attributed_fraction"], 1),
                numeric(known["region_fraction"].mean(), 3),
                spread(known["above_region"]),
                spread(known["found"]),
                spread(group["accuracy"]),
                TableCell(
                    f"{(group['chance_bound'] < ALPHA).sum()} of {len(group)}",
                    (group["chance_bound"] < ALPHA).mean(),
                ),
                spread(known["auc"]),
                numeric(group["undefined"].sum(), 0),
            ]
        )
    caption = (
        "The share of importance on what the label follows, mean ± standard deviation over models (seeds, variants), "
        "on an axis from 0 to 1, beside that part's share of words or pixels, which is what knowing nothing gets, and "
        "relative to it: 0 is what knowing nothing gets and 1 all, whatever the part's size; the "
        "share of it among as many top words or pixels, and the chance that one of it ranks above another. Higher is "
        "better, of models that surely use it: one that does not would be right so often with a chance below 0.001. "
        "Undefined are maps without any importance."
    )
    columns = [
        "dataset",
        "model",
        "measure",
        "importance on it",
        "its share",
        "relative",
        "found at the top",
        "accuracy",
    ]
    return Table(caption, [*columns, "models that use it", "AUC", "undefined"], rows, frozenset(range(3, 11)))


def rationales_overview(rationales: pd.DataFrame) -> Table:
    """A line for each model that selects words, with the best that could be at the share that it selects."""
    frame = without_categories(rationales)
    rows = []
    for cell, group in frame.groupby(["dataset", "variant", "model"]):
        dataset, variant, model = map(str, cell)
        shares = ["selection_rate", "precision", "optimum_precision", "recall", "optimum_recall", "accuracy"]
        target = numeric(group["target_rate"].mean(), 3)
        rows.append(
            [TableCell(named(dataset, variant)), TableCell(model), target, *(spread(group[share]) for share in shares)]
        )
    caption = (
        "What rationale models select, mean ± standard deviation over seeds: precision is the share of selected words "
        "that the label follows, recall the share of these that is selected, each beside the best that as many "
        "selected words could reach."
    )
    columns = ["dataset", "model", "target", "selected", "precision", "at best", "recall", "at best", "accuracy"]
    return Table(caption, columns, rows, frozenset(range(2, 9)))


def _finding(ground_truth: pd.DataFrame, random: str) -> str:
    rows = without_categories(ground_truth)
    rows = rows[rows["truth"] & (rows["class"] == "all") & (rows["status"] == "ok") & (rows["measure"] != random)]
    told = by_measure(rows["above_region"], rows["measure"])
    return f"Importance on what decides, 0 as by chance, 1 all: {told}." if told else ""


@page(
    "truth",
    title="Ground truth",
    about="Does importance fall where it must, on data made so that this is known?",
    tables=["ground_truth", "rationales", "trace"],
    order=60,
)
def truth_page(content: Content) -> Page:
    """Known truth, and rationales."""
    frames = content.tables
    sections = [
        Section(
            "ground-truth",
            "Ground truth",
            "Datasets were modified so that labels follow what was put into the texts or images and nothing else. A "
            "model that is right uses that, and a measure that is right points there.",
            {"truth": table_of(frames, "ground_truth", truth_overview)},
            axis="from-zero",
        ),
        Section(
            "selected",
            "Rationales",
            "Do models that select words and classify by these alone select the words that decide?",
            {"rationales": table_of(frames, "rationales", rationales_overview)},
        ),
    ]
    lead = Markup(
        "The question of Zhou et al. (2022), <cite>Do Feature Attribution Methods Correctly Attribute Features?</cite>"
    )
    return Page(sections, lead, _finding(frames["ground_truth"], content.random) if "ground_truth" in frames else "")
