"""Masked erasure in the report: faithfulness, and how many masked texts are out of distribution."""

import pandas as pd
from markupsafe import Markup

from plumbline.protocols.roar.page import faithfulness_finding, faithfulness_overview
from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.page import Page, Section, table_of
from plumbline.report.tables import Table, by_cell, spread, without_categories


def outlying_overview(masked_erasure: pd.DataFrame) -> Table:
    """The share of texts out of distribution at each level, one row per dataset, model and measure."""
    frame = without_categories(masked_erasure)
    frame = frame[frame["metric"] == "out_of_distribution"].dropna(subset=["value"])
    levels = sorted(frame["level"].unique())
    rows = []
    for names, group in by_cell(frame, "measure"):
        rows.append([*names, *(spread(group[group["level"] == level]["value"]) for level in levels)])
    caption = (
        "The share of texts with p < 0.05 at each percentage of masked words, mean ± standard deviation over seeds. The"
        " p-value says how typical the representation of a text is of dev texts masked as in training: half of these "
        "have a random share of their words masked. Of such texts, 0.05 have a p-value below 0.05. A larger share, also"
        " than that of the random measure at the same level, means that the masks of a measure make texts unlike those "
        "that the model was trained on."
    )
    columns = ["dataset", "model", "measure", *(f"{level} %" for level in levels)]
    return Table(caption, columns, rows, frozenset(range(3, len(columns))))


@page("masked_erasure", title="Masked erasure", tables=["masked_erasure", "masked_faithfulness"], order=55)
def masked_erasure_page(content: Content) -> Page:
    """Does masking important words lower the score more than masking at random, for a model trained with masks?"""
    frames = content.tables
    sections = [
        Section(
            "masked",
            "Faithfulness",
            "An increasing percentage of words is masked, by importances that are recomputed on the masked texts. The "
            "models were trained with masked words, so they are not retrained.",
            {"masked-faithfulness": table_of(frames, "masked_faithfulness", faithfulness_overview)},
        ),
        Section(
            "outlying",
            "Are masked texts in the training distribution?",
            tables={"out-of-distribution": table_of(frames, "masked_erasure", outlying_overview)},
        ),
    ]
    lead = Markup("Faithfulness measurable models, as in Madsen et al. (2024).")
    finding = faithfulness_finding(frames["masked_faithfulness"]) if "masked_faithfulness" in frames else ""
    return Page(sections, lead, finding)
