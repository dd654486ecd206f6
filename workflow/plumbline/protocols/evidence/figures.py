"""AUPRC of the marked evidence by measure and model, next to that of a random order.

Rows are those of the table `evidence`. Whiskers are 95 % intervals: over seeds if there are enough of them, else the
mean of each seed's interval over texts.
"""

from math import ceil

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.figures import style
from plumbline.figures.classes import mark
from plumbline.figures.drawing import Drawing
from plumbline.figures.layout import finish, hide_unused, panel_figure
from plumbline.protocols.bootstrap import FEWEST, mean_interval
from plumbline.protocols.evidence.schemas import EVIDENCE
from plumbline.registry import figure
from plumbline.tables.chance import DEFINED

COLUMNS = 3
SOURCES = {
    "rule": "The evidence determines the answer by construction: higher is better.",
    "human": "People marked the evidence: higher is more plausible, not more faithful.",
}


def evidence_by_measure(evidence: pd.DataFrame, title: str) -> Figure:
    """A panel for each model and a point for each measure, the best on average first; a dotted line is chance."""
    rows = evidence[evidence["status"].isin(DEFINED)].dropna(subset="auprc")
    if rows.empty:
        return style.sentence_figure(f"{title}: no text has words that are evidence and words that are not")
    rows = rows.astype({"model": str, "measure": str})
    measures = list(rows.groupby("measure")["auprc"].mean().sort_values(ascending=False).index)
    models = sorted(rows["model"].unique())
    columns = min(len(models), COLUMNS)
    count, height = ceil(len(models) / columns), 0.5 + 0.16 * len(measures)
    with style.theme():
        figure = panel_figure(style.ONE_COLUMN if columns == 1 else style.TWO_COLUMNS)
        grid = figure.subplots(count, columns, sharex=True, sharey=True, squeeze=False)
        for model, panel in zip(models, hide_unused(grid, len(models)), strict=True):
            own = rows[rows["model"] == model]
            panel.axvline(own["auprc_chance"].mean(), color=style.FAINT, linewidth=0.8, linestyle=(0, (1, 1.5)))
            for measure, seeds in own.groupby("measure"):
                y, colour = measures.index(measure), style.measure_colour(str(measure))
                within = seeds["ci_low"].mean(), seeds["ci_high"].mean()
                ends = mean_interval(seeds["auprc"]) if len(seeds) >= FEWEST else within
                panel.plot(ends, [y, y], color=colour, linewidth=0.9, zorder=2)
                panel.plot(seeds["auprc"].mean(), y, "o", color=colour, markersize=3.6, zorder=3, clip_on=False)
            panel.set_title(model, loc="left", pad=4, fontsize=7)
            panel.set(xlim=(-0.03, 1.03), ylim=(len(measures) - 0.4, -0.6), xticks=(0, 0.5, 1))
            panel.set_yticks(range(len(measures)), measures)
            panel.tick_params(axis="y", length=0)
        keys = [mark("o", style.INK, 4, "AUPRC of the evidence")]
        keys.append(Line2D([], [], color=style.FAINT, linewidth=0.8, linestyle=(0, (1, 1.5)), label="random order"))
        whiskers = f"Whiskers: 95 % intervals over seeds or, for fewer than {FEWEST} seeds, over texts."
        finish(figure, title, keys, f"{SOURCES.get(rows['source'].iloc[0], '')} {whiskers}".strip(), count * height)
    return figure


@figure(
    "evidence",
    reads=["evidence"],
    cells="evidence",
    per=["dataset"],
    page="evidence",
    experiment="evidence",
    order=260,
)
def draw_evidence(drawing: Drawing) -> Figure:
    """How well each measure (rows) ranks the evidence of a text first, by model (panels). Horizontal axis: area under
    the precision-recall curve (AUPRC), 1 if all evidence comes first: means over texts and seeds, with 95 % intervals
    over seeds or, for fewer than three seeds, over texts. The dotted line is a random order. Higher is better if the
    evidence determines the answer; if people marked it, higher is more plausible, not more faithful.
    """
    return evidence_by_measure(drawing.rows(EVIDENCE), drawing.title)
