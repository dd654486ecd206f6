"""The share of importance on the effective region by the manipulation's visibility or the share of labels kept (Zhou et
al. 2022, Figures 7 and 8)."""

from itertools import cycle
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from plumbline.data.manipulation import shapley_bounds
from plumbline.figures import style
from plumbline.figures.drawing import Drawing
from plumbline.figures.layout import MARKERS, finish, panel_figure
from plumbline.protocols.ground_truth.figures import (
    ATTRIBUTED,
    CHANCE,
    HIGHER,
    RANDOM,
    REGION,
    average_rows,
    truth_rows,
)
from plumbline.protocols.ground_truth.schemas import GROUND_TRUTH
from plumbline.registry import figure

BAND = "#d9e4d3"
# The height of a panel and its least width in inches.
TALL, WIDE = 0.95, 1.05


def attribution_by_visibility(truth: pd.DataFrame, title: str) -> Figure:
    """The share of importance in the effective region against the visibility of the manipulation (Figure 7).

    Measure by manipulation, with a line for each draw, whose region is the same at all levels.
    """
    rows = truth_rows(truth)
    rows = rows[(rows["class"] == "all") & rows["level"].notna()]
    if rows.empty:
        return style.sentence_figure(f"{title}: no manipulation has levels of visibility.")
    note = (
        "Horizontal axis: level of visibility, from 1. Vertical axis: share of importance on the region. A line for "
        f"each draw of the region, with its share dotted. {HIGHER} An accurate model must rely on the region at every "
        "level."
    )
    return _curve_grid(rows, "level", title, note)


def attribution_by_reassignment(truth: pd.DataFrame, title: str) -> Figure:
    """The share of importance in the effective region against the share of labels kept (Figure 8).

    Measure by manipulation, with a line for each draw; the band is the possible range of the region's share of the
    Shapley values, given the accuracy.
    """
    rows = truth_rows(truth)
    rows = rows[(rows["class"] == "all") & rows["r"].notna()]
    rows = rows[rows.groupby("manipulation", observed=True)["r"].transform("nunique") > 1]
    if rows.empty:
        return style.sentence_figure(f"{title}: no manipulation has several shares of labels kept.")
    note = (
        "Horizontal axis: r, the probability that a label was kept; with larger r a model may use more of the original "
        "image or text. Vertical axis: share of importance on the region. A line for each draw of the region, with its "
        "share dotted. Shaded: the region's share of the Shapley values, at least (2p − r − ½) / (2p − 1) at "
        "accuracy p."
    )
    return _curve_grid(rows, "r", title, note)


def _curve_grid(rows: pd.DataFrame, level: str, title: str, note: str) -> Figure:
    """Measures from top to bottom, manipulations from left to right, with a line for each draw in each panel."""
    if rows["model"].nunique() > 1:
        rows = rows.assign(manipulation=rows["manipulation"] + ", " + rows["model"])
    points = average_rows(rows, ["manipulation", "draw", level, "measure"])
    measures, names = style.ordered(points["measure"], last=RANDOM), sorted(points["manipulation"].unique())
    markers = dict(zip(sorted(points["draw"].unique()), cycle(MARKERS), strict=False))
    with style.theme():
        figure = panel_figure(max(style.TWO_COLUMNS if len(names) > 2 else style.ONE_COLUMN, 0.7 + WIDE * len(names)))
        grid = figure.subplots(len(measures), len(names), sharex="col", sharey=True, squeeze=False)
        for panels, measure in zip(grid, measures, strict=True):
            for panel, name in zip(panels, names, strict=True):
                of_name = points[points["manipulation"] == name]
                if level == "r":
                    _shade_shapley(panel, of_name)
                for draw, curve in of_name[of_name["measure"] == measure].groupby("draw"):
                    _plot_curve(panel, curve.sort_values(level), level, style.measure_colour(measure), markers[draw])
                panel.set(ylim=(-0.03, 1.06), yticks=(0, 0.5, 1), xticks=sorted(of_name[level].unique()))
                panel.margins(x=0.06)
            panels[0].set_ylabel("\n".join(wrap(measure, 13)), color=style.measure_colour(measure), fontsize=7)
        for panel, name in zip(grid[0], names, strict=True):
            panel.set_title("\n".join(wrap(name, 18)), loc="left", pad=4, fontsize=7.5, parse_math=False)
        for panel in grid[-1]:
            panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}".removeprefix("0") or "0")
        keys: list[Any] = [
            Line2D([], [], color=style.INK, linewidth=1, markersize=4, marker=marker, label=f"draw {draw:g}")
            for draw, marker in markers.items()
        ]
        keys.append(Line2D([], [], **CHANCE, label="region's share"))
        if level == "r":
            keys.append(Patch(color=BAND, label="region's share of the Shapley values"))
        finish(figure, title, keys, note, TALL * len(measures) + 0.2)
    return figure


def _plot_curve(panel: Axes, curve: pd.DataFrame, level: str, colour: str, marker: str) -> None:
    panel.fill_between(curve[level], curve["low"], curve["high"], color=colour, alpha=0.15, linewidth=0, zorder=2)
    line: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 2.8, "linewidth": 1, "markeredgewidth": 0}
    panel.plot(curve[level], curve[ATTRIBUTED], zorder=3, **line)
    panel.plot(curve[level], curve[REGION], zorder=1.5, **CHANCE)


def _shade_shapley(panel: Axes, points: pd.DataFrame) -> None:
    """Shade from the region's least share of the Shapley values, at the models' mean accuracy, to 1."""
    accuracy = points.groupby("r")["accuracy"].mean()
    accuracy = accuracy[accuracy > 0.5]
    pairs = zip(accuracy.index.tolist(), accuracy.tolist(), strict=True)
    least = [float(np.clip(shapley_bounds(r, p)[0], 0, 1)) for r, p in pairs]
    panel.fill_between(accuracy.index, least, 1, color=BAND, linewidth=0, zorder=0.5)


@figure(
    "attribution-by-visibility",
    reads=["ground_truth"],
    cells="ground_truth",
    per=["dataset"],
    only=["visibility"],
    page="truth",
    experiment="ground truth",
    order=190,
)
def draw_by_visibility(drawing: Drawing) -> Figure:
    """Share of importance on the region that determines the label (vertically) by the visibility of the manipulation
    (horizontally), one row per measure and one column per manipulation (Zhou et al.’s Figure 7). A line for each draw
    of the region; bands are 95 % intervals over seeds or, for fewer than three seeds, over images or texts; dotted is
    the region’s share of the image or text. Higher is better at every level, because an accurate model must rely on the
    region.
    """
    return attribution_by_visibility(drawing.rows(GROUND_TRUTH), drawing.title)


@figure(
    "attribution-by-reassignment",
    reads=["ground_truth"],
    cells="ground_truth",
    per=["dataset"],
    only=["reassignment"],
    page="truth",
    experiment="ground truth",
    order=200,
)
def draw_by_reassignment(drawing: Drawing) -> Figure:
    """Share of importance on the region that determines the label (vertically) by r, the probability that an original
    label was kept (horizontally), one row per measure and one column per manipulation (Zhou et al.’s Figure 8). With
    larger r a model may also use the original image or text. A line for each draw of the region; bands in the colour of
    the measure are 95 % intervals over seeds or, for fewer than three seeds, over images or texts; dotted is the
    region’s share. A measure should lie in the green band, the range of the region’s share of the Shapley values at
    this accuracy.
    """
    return attribution_by_reassignment(drawing.rows(GROUND_TRUTH), drawing.title)
