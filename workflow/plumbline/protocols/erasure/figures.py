"""Every measure by every metric of erasure, against the random one.

Rows are those of the table `erasure`. Whiskers are 95 % intervals: over seeds if there are enough of them, else the
mean of each seed's interval over texts.
"""

from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.figures import style
from plumbline.figures.classes import mark
from plumbline.figures.drawing import Drawing
from plumbline.figures.intervals import NINETY_FIVE
from plumbline.figures.layout import finish, panel_figure
from plumbline.protocols.bootstrap import FEWEST, mean_interval
from plumbline.protocols.erasure.schemas import ERASURE
from plumbline.protocols.erasure.titles import METRICS
from plumbline.registry import figure
from plumbline.tables.chance import DEFINED

RANDOM_LINE: dict[str, Any] = {"color": style.FAINT, "linewidth": 0.9, "linestyle": (0, (1, 1.5)), "zorder": 1}
# The width of a panel's title in characters, and the height of a measure in inches.
WIDE, HIGH = 20, 0.17
NOTE = (
    "Further right is better in every panel (↓: the axis is reversed). "
    f"Whiskers: 95 % intervals over seeds or, for fewer than {FEWEST} seeds, over texts."
)


def erasure_points(erasure: pd.DataFrame) -> pd.DataFrame:
    """The mean of each variant, metric and measure over seeds, and its interval (`low`, `high`)."""
    rows = erasure[erasure["ratio"].isna() & erasure["status"].isin(DEFINED)]
    points = []
    for key, group in rows.groupby(["variant", "metric", "measure"], observed=True):
        mean, half = group["mean"].mean(), (NINETY_FIVE * group["std"] / np.sqrt(group["n"])).mean()
        low, high = mean_interval(group["mean"]) if len(group) >= FEWEST else (mean - half, mean + half)
        points.append([*map(str, key), mean, low, high])
    return pd.DataFrame(points, columns=["variant", "metric", "measure", "mean", "low", "high"])


def erasure_figure(erasure: pd.DataFrame, random: str, title: str) -> Figure:
    """A row of panels for each variant of the dataset, a panel for each metric; the best measures are on top."""
    points = erasure_points(erasure)
    if points.empty:
        return style.sentence_figure(f"{title}: no text has a value")
    metrics = [metric for metric in METRICS if metric in set(points["metric"])]
    variants = list(dict.fromkeys(points["variant"]))
    measures = _best_first(points, random)
    with style.theme():
        figure = panel_figure(style.TWO_COLUMNS)
        grid = figure.subplots(len(variants), len(metrics), sharex="col", sharey=True, squeeze=False)
        for variant, panels in zip(variants, grid, strict=True):
            for metric, panel in zip(metrics, panels, strict=True):
                here = points[(points["variant"] == variant) & (points["metric"] == metric)]
                _plot_measures(panel, here, measures, random)
            if len(variants) > 1:
                panels[0].set_ylabel(variant, fontsize=7)
        for metric, panel in zip(metrics, grid[0], strict=True):
            panel.set_title(fill(METRICS[metric], WIDE), loc="left", pad=4, fontsize=6)
            if METRICS[metric].endswith("↓"):
                panel.invert_xaxis()
        keys = [mark("o", style.INK, 4, "a measure")]
        keys += [Line2D([], [], label="random importances", **RANDOM_LINE)] if random in measures else []
        finish(figure, title, keys, NOTE, len(variants) * (0.3 + HIGH * len(measures)) + 0.35)
    return figure


def _best_first(points: pd.DataFrame, random: str) -> list[str]:
    """The measures by their mean rank over variants and metrics; the random one comes last."""
    downward = points["metric"].map(METRICS).str.endswith("↓")
    better = points["mean"].where(~downward, -points["mean"])
    ranks = better.groupby([points["variant"], points["metric"]]).rank(ascending=False)
    means = ranks.groupby(points["measure"]).mean()
    return sorted(means.index, key=lambda measure: (measure == random, means[measure]))


def _plot_measures(panel: Axes, points: pd.DataFrame, measures: list[str], random: str) -> None:
    for point in points.to_dict("records"):
        y, colour = measures.index(point["measure"]), style.measure_colour(point["measure"])
        panel.plot([point["low"], point["high"]], [y, y], color=colour, linewidth=1, zorder=2, solid_capstyle="butt")
        panel.plot(point["mean"], y, "o", color=colour, markersize=4, markeredgewidth=0, zorder=3, clip_on=False)
        if point["measure"] == random:
            panel.axvline(point["mean"], **RANDOM_LINE)
    panel.set_ylim(len(measures) - 0.4, -0.6)
    panel.set_yticks(range(len(measures)), measures)
    panel.tick_params(axis="y", length=0)
    panel.locator_params(axis="x", nbins=3)


@figure(
    "erasure",
    reads=["erasure"],
    params=["random"],
    cells="erasure",
    per=["dataset", "model"],
    page="erasure",
    experiment="erasure",
    order=260,
)
def draw_erasure(drawing: Drawing) -> Figure:
    """Every measure (rows) by every metric of erasure (panels, with a row of panels for each variant of the dataset).
    Points are means over texts and seeds, with 95 % intervals over seeds or, for fewer than three seeds, over texts.
    Further right is better in every panel: the axes of metrics with ↓ are reversed. The dotted line is the value of
    random importances; the words that a measure left of it ranks first matter less than arbitrary ones.
    """
    return erasure_figure(drawing.rows(ERASURE), drawing.facts["random"], drawing.title)
