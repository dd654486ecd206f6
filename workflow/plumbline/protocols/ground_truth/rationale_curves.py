"""Precision and recall of the words that rationale models select (Zhou et al. 2022, Figures 15 to 18)."""

from collections.abc import Mapping
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.figures import style
from plumbline.figures.classes import mark
from plumbline.figures.drawing import Drawing
from plumbline.figures.layout import MARKERS, finish, panel_figure
from plumbline.protocols.ground_truth.rationales import optimum_curve
from plumbline.protocols.ground_truth.schemas import RATIONALE_SCORES, RATIONALES
from plumbline.registry import figure
from plumbline.store import read_table
from plumbline.tables.chance import DEFINED

# The columns of panels, each against the share of selected words.
CURVES = ("precision", "recall")
# The line styles of the two optima: for a selection rate over the whole dataset, and for the same rate in each text.
OPTIMA: dict[str, dict[str, Any]] = {
    "dataset": {"linestyle": "-", "label": "optimum over all texts together"},
    "text": {"linestyle": (0, (4, 2)), "label": "optimum with the same share in each text"},
}
OPTIMUM: dict[str, Any] = {"color": style.FAINT, "linewidth": 1}
COLOURS = ["#004488", "#BB5566", "#228833", "#AA3377", "#66CCEE", "#DDAA33"]
TALL = 1.6


def rationale_curves(rationales: pd.DataFrame, optimum: pd.DataFrame, title: str) -> Figure:
    """Precision and recall of the truth against the share of selected words: a row of panels for each variant, a point
    for each model and seed, and the optimum as lines.

    rationales: rows of the table of that name about one dataset; a model has one colour and marker. optimum: `rate`,
    `precision` and `recall` by `variant` and `of`: the whole `dataset`, or each `text` at the same rate.
    """
    rows = rationales[rationales["status"].isin(DEFINED)]
    if rows.empty:
        return style.sentence_figure(f"{title}: no model selects words with a known truth.")
    rows = rows.assign(variant=rows["variant"].astype(str), model=rows["model"].astype(str))
    variants = list(dict.fromkeys(rows["variant"]))
    markers = dict(zip(sorted(set(rows["model"])), zip(cycle(COLOURS), cycle(MARKERS), strict=False), strict=False))
    with style.theme():
        figure = panel_figure(style.TWO_COLUMNS)
        grid = figure.subplots(len(variants), len(CURVES), sharex=True, sharey=True, squeeze=False)
        for panels, variant in zip(grid, variants, strict=True):
            of_variant = rows[rows["variant"] == variant]
            best = optimum[optimum["variant"] == variant].sort_values("rate")
            for panel, value in zip(panels, CURVES, strict=True):
                for of, line in OPTIMA.items():
                    curve = best[best["of"] == of]
                    panel.plot(curve["rate"], curve[value], zorder=1.5, **OPTIMUM, **line)
                for model, (colour, marker) in markers.items():
                    points = of_variant[of_variant["model"] == model]
                    dots: dict[str, Any] = {"color": colour, "markersize": 4.2, "alpha": 0.9, "zorder": 3}
                    panel.plot(points["selection_rate"], points[value], marker, clip_on=False, **dots)
                panel.set(ylim=(-0.03, 1.05), yticks=(0, 0.5, 1))
                panel.set_title(f"{value}, {variant}", loc="left", pad=4, parse_math=False)
        grid[0, 0].set_xlim(0, 1.08 * max(float(rows["selection_rate"].max()), 0.01))
        keys = [mark(marker, colour, 4.2, model) for model, (colour, marker) in markers.items()]
        keys += [Line2D([], [], **OPTIMUM, **line) for line in OPTIMA.values()]
        note = (
            "Horizontal axis: share of selected words. Precision: share of the selected words that belong to the "
            "truth; recall: share of the truth that is selected. Higher is better."
        )
        finish(figure, title, keys, note, TALL * len(variants) + 0.15)
    return figure


def optimum_lines(scores: Mapping[str, pd.DataFrame], rates: np.ndarray) -> pd.DataFrame:
    """The best precision and recall at each rate by variant: over the whole dataset, or with this rate in each text.

    scores: rows of the table `rationale_scores` by variant.
    """
    lines = []
    for variant, rows in scores.items():
        rows = rows[rows["seed"] == rows["seed"].min()]
        curve = optimum_curve(rows["words"].to_numpy(), rows["truth"].to_numpy(), rates)
        for of, suffix in (("dataset", ""), ("text", "_each")):
            line = curve[["selection_rate", *(f"optimum_{name}{suffix}" for name in CURVES)]]
            lines.append(line.set_axis(["rate", *CURVES], axis=1).assign(variant=variant, of=of))
    return pd.concat(lines, ignore_index=True)


@figure(
    "rationale-curves",
    reads=["rationales", "scores:rationales"],
    params=["model_kinds"],
    cells="rationales",
    per=["dataset"],
    page="truth",
    experiment="rationales",
    order=240,
)
def draw_rationales(drawing: Drawing) -> Figure:
    """Precision (left) and recall (right) of the words that rationale models select, against the share of words that
    they select (horizontally), a row for each variant (Zhou et al.’s Figures 15 to 18). Precision is the share of
    selected words that determine the label, recall the share of these words that is selected; higher is better. A point
    for each model and seed. Lines are the optimum: with this share over all texts together (solid), and with this share
    in each text (dashed).
    """
    rows = drawing.rows(RATIONALES)
    rows = rows.assign(model=rows["model"].map(drawing.facts["model_kinds"]))
    # All models of a variant have the same texts: those of the first are read.
    paths = {cell["variant"]: path for cell, path in reversed(drawing.here("scores:rationales"))}
    scores = {variant: read_table(path, RATIONALE_SCORES).to_pandas() for variant, path in paths.items()}
    # The optimum is drawn up to a little above the models' largest selection rate.
    rates = np.linspace(0.01, max(0.2, 1.1 * rows["selection_rate"].max()), 60)
    return rationale_curves(rows, optimum_lines(scores, rates), drawing.title)
