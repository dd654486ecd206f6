"""Curves of masked erasure: performance by the share of masked words, and how many texts are out of distribution."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.figures import style
from plumbline.figures.drawing import Drawing
from plumbline.figures.layout import finish, panel_figure
from plumbline.protocols.masked_erasure.conformal import LEVEL
from plumbline.protocols.masked_erasure.schemas import MASKED_ERASURE
from plumbline.protocols.roar.figures import FLOOR, LOWER, TALL, UNITS, measure_keys, plot_measures, seed_note
from plumbline.protocols.roar.table import EVERYTHING
from plumbline.registry import figure
from plumbline.tables.chance import DEFINED

OUTLYING = "out_of_distribution"


def masked_curves(rows: pd.DataFrame, metric: str, title: str, random: str = "") -> Figure:
    """A metric (left) and the share of texts out of distribution (right) by the masked share of words, a line for each
    measure. `rows` are those of the table `masked_erasure` for one dataset and model."""
    rows = rows[rows["status"].isin(DEFINED)].dropna(subset=["value"])
    measures = style.ordered(rows["measure"], last=random)
    with style.theme():
        figure = panel_figure(style.TWO_COLUMNS)
        panels = figure.subplots(1, 2, sharex=True)
        for panel, name in zip(panels, (metric, OUTLYING), strict=True):
            curves = rows[rows["metric"] == name]
            plot_measures(panel, curves, "level", "value", measures, random)
            everything = curves.loc[curves["level"] == EVERYTHING, "value"].mean()
            panel.axhline(LEVEL if name == OUTLYING else everything, zorder=1.5, **FLOOR)
            panel.set_xlabel(UNITS["relative"])
        panels[0].set_xlim(left=0)
        panels[0].set_ylabel(metric.replace("_", " "))
        panels[1].set_ylabel(f"share of texts with p < {LEVEL}")
        # A narrow axis would exaggerate small differences.
        panels[1].set_ylim(0, max(4 * LEVEL, panels[1].get_ylim()[1]))
        dotted = Line2D([], [], **FLOOR, label=f"everything masked (left), {LEVEL} (right)")
        note = f"{LOWER} Right: far above random, masked texts differ from those that the model was trained on. "
        finish(figure, title, [*measure_keys(measures, random), dotted], note + seed_note(rows), TALL)
    return figure


@figure(
    "masked-curves",
    reads=["masked_erasure"],
    params=["headlines", "random"],
    cells="masked_erasure",
    per=["dataset", "model"],
    page="masked_erasure",
    experiment="masked erasure",
    order=115,
)
def draw_masked_curves(drawing: Drawing) -> Figure:
    """Left: score of a model trained with masked words (vertically) by the percentage of masked words (horizontally), a
    line for each measure that ranks the words, dashed for masking at random and dotted for everything masked. The
    further a line is below random, the more faithful the measure. Right: share of masked texts whose representation is
    unusual (p < 0.05) among dev texts that are masked at random as in training; of such texts, 0.05 are expected
    (dotted), and far above it the left panel is less reliable. Lines are means over seeds, bands 95 % intervals over
    seeds.
    """
    headline, random = drawing.facts["headlines"][drawing.dataset], drawing.facts["random"]
    return masked_curves(drawing.rows(MASKED_ERASURE), headline, drawing.title, random)
