"""Erasure in the report: the area over the curve for each measure, and the curve itself."""

import pandas as pd
from markupsafe import Markup

from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.findings import by_measure
from plumbline.report.page import Page, Section, table_of
from plumbline.report.tables import Table, TableCell, named, numeric, spread, without_categories

# The metrics of the table, which way is better, and whether they have a curve.
METRICS = {
    "comprehensiveness": "comprehensiveness ↑",
    "sufficiency": "sufficiency ↓",
    "soft_comprehensiveness": "soft comprehensiveness ↑",
    "soft_sufficiency": "soft sufficiency ↑",
}
KEYS = ["dataset", "variant", "model", "measure"]


def erasure_overview(erasure: pd.DataFrame) -> Table:
    """A line for each measure of a dataset and model."""
    frame = without_categories(erasure)
    whole = frame[frame["ratio"].isna()]
    metrics = [metric for metric in METRICS if metric in set(whole["metric"])]
    rows = []
    for key, group in whole.groupby(KEYS):
        dataset, variant, model, measure = map(str, key)
        means = [spread(group[group["metric"] == metric]["mean"]) for metric in metrics]
        texts = [numeric(group[count].max(), 0) for count in ("n", "dropped")]
        rows.append([TableCell(named(dataset, variant)), TableCell(model), TableCell(measure), *means, *texts])
    caption = (
        "The area over the perturbation curve of the hard metrics, and the soft ones: mean over texts, ± standard "
        "deviation over seeds. ↑: higher is better, ↓: lower is. Compare with random, which is what erasing any words "
        "does. “left out” counts texts of which the soft metrics, or all, tell nothing."
    )
    columns = ["dataset", "model", "measure", *(METRICS[metric] for metric in metrics), "texts", "left out"]
    return Table(caption, columns, rows, frozenset(range(3, len(columns))))


def erasure_curve_overview(erasure: pd.DataFrame) -> Table:
    """The hard metrics at each ratio."""
    frame = without_categories(erasure).dropna(subset="ratio")
    ratios = sorted(frame["ratio"].unique())
    rows = []
    for key, group in frame.groupby([*KEYS, "metric"]):
        dataset, variant, model, measure, metric = map(str, key)
        means = [spread(group[group["ratio"] == ratio]["mean"]) for ratio in ratios]
        rows.append(
            [TableCell(named(dataset, variant)), TableCell(model), TableCell(measure), TableCell(metric), *means]
        )
    caption = "The same at each share of the words that are erased, or that alone are kept."
    columns = ["dataset", "model", "measure", "metric", *(f"{ratio:g} %" for ratio in ratios)]
    return Table(caption, columns, rows, frozenset(range(4, len(columns))))


def _finding(erasure: pd.DataFrame, random: str) -> str:
    rows = without_categories(erasure)
    rows = rows[(rows["metric"] == "comprehensiveness") & rows["ratio"].isna() & (rows["status"] == "ok")]
    rows = rows[rows["measure"] != random]
    told = by_measure(rows["mean"], rows["measure"])
    return f"Mean comprehensiveness: {told}." if told else ""


@page(
    "erasure",
    title="Erasure",
    about="Does the output fall without the important words, and stay with them alone?",
    tables=["erasure"],
    order=70,
)
def erasure_page(content: Content) -> Page:
    """Comprehensiveness and sufficiency."""
    frames = content.tables
    sections = [
        Section(
            "areas",
            "Comprehensiveness and sufficiency",
            tables={"erasure": table_of(frames, "erasure", erasure_overview)},
        ),
        Section(
            "ratios", "By the share of words", tables={"curves": table_of(frames, "erasure", erasure_curve_overview)}
        ),
    ]
    lead = Markup(
        "Comprehensiveness and sufficiency (DeYoung et al. 2020), and their soft forms (Zhao &amp; Aletras 2023). "
        "Nothing is retrained, so shortened texts are unlike those that the model was trained on."
    )
    return Page(sections, lead, _finding(frames["erasure"], content.random))
