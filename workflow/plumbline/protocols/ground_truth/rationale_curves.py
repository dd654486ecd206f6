"""How much of what a model selects is the truth, and how much of the truth it selects (Zhou et al. 2022, Figures 15 to
18)."""

from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.figures import style
from plumbline.figures.classes import mark
from plumbline.figures.drawing import Drawing
from plumbline.protocols.ground_truth.schemas import RATIONALE_SCORES, RATIONALES
from plumbline.protocols.ground_truth.shown import optimum_lines
from plumbline.protocols.roar.figures import MARKERS, finish, panel_figure
from plumbline.registry import figure
from plumbline.store import read_table
from plumbline.tables.chance import DEFINED

# What is drawn against the share of words selected, from left to right.
DRAWN = ("precision", "recall")
# How the best that could be is drawn: with as many words of all texts together, and with the same share of each.
OPTIMA: dict[str, dict[str, Any]] = {
    "dataset": {"linestyle": "-", "label": "best for all texts together"},
    "text": {"linestyle": (0, (4, 2)), "label": "best for each text alike"},
}
OPTIMUM: dict[str, Any] = {"color": style.FAINT, "linewidth": 1}
COLOURS = ["#004488", "#BB5566", "#228833", "#AA3377", "#66CCEE", "#DDAA33"]
TALL = 1.6


def rationale_curves(rationales: pd.DataFrame, optimum: pd.DataFrame, title: str) -> Figure:
    """Precision and recall of the truth against the share of words that are selected: a line of panels for each
    variant, a point for each model and seed, and the best that there could be.

    rationales: rows of the table of that name about one dataset; models of the same name look alike. optimum: `rate`,
    `precision` and `recall` by `variant` and what they are `of`: the `dataset`, or each `text` at the same rate.
    """
    rows = rationales[rationales["status"].isin(DEFINED)]
    if rows.empty:
        return style.sentence_figure(f"{title}: No model here selects words of a known truth.")
    rows = rows.assign(variant=rows["variant"].astype(str), model=rows["model"].astype(str))
    variants = list(dict.fromkeys(rows["variant"]))
    looks = dict(zip(sorted(set(rows["model"])), zip(cycle(COLOURS), cycle(MARKERS), strict=False), strict=False))
    with style.theme():
        figure = panel_figure(style.TWO_COLUMNS)
        grid = figure.subplots(len(variants), len(DRAWN), sharex=True, sharey=True, squeeze=False)
        for panels, variant in zip(grid, variants, strict=True):
            here = rows[rows["variant"] == variant]
            best = optimum[optimum["variant"] == variant].sort_values("rate")
            for panel, value in zip(panels, DRAWN, strict=True):
                for of, line in OPTIMA.items():
                    curve = best[best["of"] == of]
                    panel.plot(curve["rate"], curve[value], zorder=1.5, **OPTIMUM, **line)
                for model, (colour, marker) in looks.items():
                    points = here[here["model"] == model]
                    look: dict[str, Any] = {"color": colour, "markersize": 4.2, "alpha": 0.9, "zorder": 3}
                    panel.plot(points["selection_rate"], points[value], marker, clip_on=False, **look)
                panel.set(ylim=(-0.03, 1.05), yticks=(0, 0.5, 1))
                panel.set_title(f"{value}, {variant}", loc="left", pad=4, parse_math=False)
        grid[0, 0].set_xlim(0, 1.08 * max(float(rows["selection_rate"].max()), 0.01))
        keys = [mark(marker, colour, 4.2, model) for model, (colour, marker) in looks.items()]
        keys += [Line2D([], [], **OPTIMUM, **line) for line in OPTIMA.values()]
        told = (
            "Horizontally the share of words that are selected. Precision: the share of the selected words that are of "
            "the truth; recall: the share of the truth that is selected. Higher is better."
        )
        finish(figure, title, keys, told, TALL * len(variants) + 0.15)
    return figure


@figure(
    "rationale-curves",
    reads=["rationales", "scores:rationales"],
    params=["model_kinds"],
    cells="rationales",
    per=["dataset"],
    page="truth",
    experiment="rationales",
    order=240,
    caption=(
        "Precision and recall of the words that rationale models select, against the share that they select, "
        "with the best that could be: for all texts together (solid) and with the same share of each (dashed;"
        " Zhou et al.’s Figures 15 to 18)."
    ),
)
def draw_rationales(drawing: Drawing) -> Figure:
    """Precision and recall against the share that is selected."""
    chosen = drawing.rows(RATIONALES)
    chosen = chosen.assign(selected=chosen["selection_rate"], model=chosen["model"].map(drawing.facts["model_kinds"]))
    files = drawing.here("scores:rationales")
    scores = [(cell["variant"], read_table(path, RATIONALE_SCORES).to_pandas()) for cell, path in files]
    # The best that could be is drawn as far as models select, and a little further.
    rates = np.linspace(0.01, max(0.2, 1.1 * chosen["selected"].max()), 60)
    return rationale_curves(chosen, optimum_lines(scores, rates), drawing.title)
