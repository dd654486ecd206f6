"""Evidence in the report: the agreement of each measure with the marked words."""

import pandas as pd
from markupsafe import Markup

from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.findings import by_measure
from plumbline.report.page import Page, Section, table_of
from plumbline.report.tables import Table, by_cell, numeric, spread, spread_on_axis, without_categories

# What each source of evidence says about a measure.
ABOUT = {"rule": "evidence that determines the answer", "human": "plausibility, not faithfulness"}


def evidence_overview(evidence: pd.DataFrame) -> Table:
    """One row per dataset, source, model and measure."""
    rows = []
    for (dataset, model, source, measure), group in by_cell(without_categories(evidence), "source", "measure"):
        rows.append(
            [
                *(dataset, source, model, measure),
                spread_on_axis(group["auprc"], 1),
                numeric(group["auprc_chance"].mean(), 3),
                *(spread(group[name]) for name in ("above_random", "token_f1", "iou")),
                *(numeric(value, digits) for value, digits in _counts(group)),
            ]
        )
    caption = (
        "Mean over texts, ± standard deviation over seeds; higher is better. “AUPRC” is the area under the "
        "precision-recall curve, on an axis from 0 to 1; “by chance” is that of a random order; “relative” is AUPRC "
        "rescaled so that 0 is a random order and 1 has all evidence first. “token F1” and “IOU” (intersection over "
        "union) compare the evidence with as many top-ranked words; “share” is the share of words that are evidence, "
        "which is also the token F1 of a random order. Source “rule”: the evidence determines the answer; “human”: "
        "people marked it, which is about plausibility. “undefined” counts texts without evidence or without other "
        "words."
    )
    columns = ["dataset", "source", "model", "measure", "AUPRC", "by chance", "relative", "token F1", "IOU"]
    columns += ["share", "texts", "undefined"]
    return Table(caption, columns, rows, frozenset(range(4, len(columns))))


def _counts(group: pd.DataFrame) -> list[tuple[float, int]]:
    return [(group["evidence_share"].mean(), 3), (group["n"].max(), 0), (group["undefined"].max(), 0)]


def _finding(evidence: pd.DataFrame, random: str) -> str:
    rows = without_categories(evidence)
    rows = rows[(rows["status"] == "ok") & (rows["measure"] != random)]
    means = {source: by_measure(own["above_random"], own["measure"]) for source, own in rows.groupby("source")}
    return " ".join(
        f"Mean AUPRC relative to a random order ({ABOUT.get(str(source), source)}): {text}."
        for source, text in means.items()
        if text
    )


@page("evidence", title="Evidence", tables=["evidence"], order=65)
def evidence_page(content: Content) -> Page:
    """Do measures give importance to the words that determine the answer, or that people marked?"""
    frames = content.tables
    tables = {"evidence": table_of(frames, "evidence", evidence_overview)}
    lead = Markup(
        "AUPRC, token F1 and intersection over union as in ERASER (DeYoung et al. 2020). Agreement with human "
        "rationales shows how plausible a measure is to people, not how faithful it is to the model."
    )
    sections = [Section("agreement", "Importance and evidence", tables=tables, axis="from-zero")]
    return Page(sections, lead, _finding(frames["evidence"], content.random))
