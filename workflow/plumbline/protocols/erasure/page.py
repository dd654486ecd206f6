"""Erasure in the report: the area over the perturbation curve of each measure, and the curve itself."""

import pandas as pd
from markupsafe import Markup

from plumbline.protocols.erasure.titles import METRICS
from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.findings import by_measure
from plumbline.report.page import Page, Section, table_of
from plumbline.report.tables import Table, by_cell, numeric, spread, without_categories


def erasure_overview(erasure: pd.DataFrame) -> Table:
    """One row per dataset, model and measure."""
    frame = without_categories(erasure)
    frame = frame[frame["ratio"].isna()]
    metrics = [metric for metric in METRICS if metric in set(frame["metric"])]
    rows = []
    for names, group in by_cell(frame, "measure"):
        means = [spread(group[group["metric"] == metric]["mean"]) for metric in metrics]
        texts = [numeric(group[count].max(), 0) for count in ("n", "dropped")]
        rows.append([*names, *means, *texts])
    caption = (
        "Areas over and between perturbation curves, and the soft metrics: mean over texts, ± standard deviation over "
        "seeds. ↑: higher is better, ↓: lower is better. Compare with the random measure, which erases arbitrary words."
        " “left out” is the largest number of texts for which a metric is undefined."
    )
    columns = ["dataset", "model", "measure", *(METRICS[metric] for metric in metrics), "texts", "left out"]
    return Table(caption, columns, rows, frozenset(range(3, len(columns))))


def erasure_curve_overview(erasure: pd.DataFrame) -> Table:
    """The hard metrics at each ratio."""
    frame = without_categories(erasure).dropna(subset="ratio")
    ratios = sorted(frame["ratio"].unique())
    rows = []
    for names, group in by_cell(frame, "measure", "metric"):
        rows.append([*names, *(spread(group[group["ratio"] == ratio]["mean"]) for ratio in ratios)])
    caption = (
        "The hard metrics at each percentage of words that are erased (comprehensiveness, higher is better) or kept "
        "(sufficiency, lower is better): mean over texts, ± standard deviation over seeds."
    )
    columns = ["dataset", "model", "measure", "metric", *(f"{ratio:g} %" for ratio in ratios)]
    return Table(caption, columns, rows, frozenset(range(4, len(columns))))


def _finding(erasure: pd.DataFrame, random: str) -> str:
    rows = without_categories(erasure)
    rows = rows[(rows["metric"] == "comprehensiveness") & rows["ratio"].isna() & (rows["status"] == "ok")]
    rows = rows[rows["measure"] != random]
    means = by_measure(rows["mean"], rows["measure"])
    return f"Mean comprehensiveness (higher is better): {means}." if means else ""


@page("erasure", title="Erasure", tables=["erasure"], order=70)
def erasure_page(content: Content) -> Page:
    """Does the predicted probability fall without the important words, and stay the same with these words alone?"""
    frames = content.tables
    areas = {"erasure": table_of(frames, "erasure", erasure_overview)}
    curves = {"curves": table_of(frames, "erasure", erasure_curve_overview)}
    sections = [
        Section("areas", "Comprehensiveness and sufficiency", tables=areas),
        Section("ratios", "By percentage of words", tables=curves),
    ]
    lead = Markup(
        "Comprehensiveness and sufficiency (DeYoung et al. 2020), and their soft forms (Zhao &amp; Aletras 2023). With "
        "words erased one by one: normalised AOPC, the area over the curve, 0 for the worst and 1 for the best order "
        "(Edin et al. 2024), and the area between the curves with the least and with the most relevant words first "
        "(LeRF, MoRF; Samek et al. 2017). The model is not retrained, so shortened texts are outside its training "
        "distribution."
    )
    return Page(sections, lead, _finding(frames["erasure"], content.random))
