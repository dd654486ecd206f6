"""Published numbers by the scale of word vectors, in studies with one dataset at several scales."""

from collections.abc import Mapping
from itertools import cycle
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.figures import style
from plumbline.figures.drawing import Drawing
from plumbline.figures.layout import MARKERS, finish, hide_unused, panel_figure
from plumbline.papers.comparison import METRIC_LABELS
from plumbline.papers.schemas import REPRODUCTION
from plumbline.registry import figure

# The panels in a row, their height in inches, and the most lines of a panel.
ACROSS, TALL, MOST = 2, 2.1, 6
# The numbers that are about explanations. What is attributed to other words follows from the rest.
ABOUT = ("kendall_tau", "AtteFa", "faithfulness", "attributed_correlating", "attributed_non-correlating")
RANDOM = "random"
# The distance of random vectors from the largest scale, in powers of ten.
APART = 0.45
PANEL = ["study", "kind", "metric"]
# What tells the numbers of a panel apart; those of classes are averaged.
LINE = ["variant", "model", "measure_a", "measure_b"]
NOTE = (
    "Horizontal axis: factor on all word vectors; to the right of it, with hollow markers, random vectors. Lines with "
    "markers: our values, means over seeds and classes ± standard deviation over seeds. Dashed lines of the same "
    "colour: the published numbers. A panel has at most {most} numbers, those that change the most."
)


def by_scale(reproduction: pd.DataFrame, vectors: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """A row per published number about explanations, scale and kind of vectors: published, ours and its spread.

    `vectors` has the kind of dataset, the scale and the kind of vectors of each dataset of the study.
    """
    # Published numbers of a single seed, and those with an epoch selected on test data, are left out.
    shown = reproduction["metric"].isin(ABOUT) & reproduction["seed"].isna()
    shown &= (reproduction["selected_on"] != "test") & reproduction["dataset"].isin(list(vectors))
    rows = reproduction[shown].dropna(subset="ours")
    same = [*LINE, "study", "dataset", "metric"]
    rows = rows[rows["n_seeds"] == rows.groupby(same, dropna=False, observed=True)["n_seeds"].transform("max")]
    names = {key: {dataset: of[key] for dataset, of in vectors.items()} for key in ("kind", "scale", "vectors")}
    rows = rows.assign(**{key: rows["dataset"].astype(object).map(values) for key, values in names.items()})
    words = [*PANEL, *LINE, "vectors"]
    rows = rows.assign(**{key: rows[key].astype(object).fillna("") for key in words})
    numbers = ["published", "ours", "ours_spread"]
    means = rows.groupby([*words, "scale"], sort=False, observed=True)[numbers].mean().reset_index()
    scales = means.groupby([*PANEL, *LINE], sort=False)["scale"].transform("nunique")
    return means[scales > 1]


def vector_scale(rows: pd.DataFrame, title: str) -> Figure:
    """A panel per study, dataset and metric: each number by the scale of vectors, and the published one.

    rows: as `by_scale` returns them.
    """
    if rows.empty:
        return style.sentence_figure(f"{title}: no published number at two scales of vectors")
    panels = list(rows.groupby(PANEL, sort=False))
    with style.theme():
        drawn = panel_figure(style.TWO_COLUMNS)
        grid = drawn.subplots(ceil(len(panels) / ACROSS), ACROSS, squeeze=False)
        for panel, (names, own) in zip(hide_unused(grid, len(panels)), panels, strict=True):
            _panel(panel, own)
            study, kind, metric = map(str, names)
            label = METRIC_LABELS.get(metric, metric.replace("_", " "))
            if own["measure_a"].nunique() == 1 < own["measure_b"].nunique():
                label += f" with {own['measure_a'].iloc[0]}"
            panel.set_title(f"{study}, {kind}: {label}", loc="left", pad=4, fontsize=7.5, parse_math=False)
        keys = [
            Line2D([], [], color=style.INK, marker="o", markersize=3, label="ours"),
            Line2D([], [], color=style.INK, linestyle="--", label="published"),
            Line2D([], [], color=style.INK, marker="o", markersize=3, fillstyle="none", label="ours, random vectors"),
        ]
        finish(drawn, title, keys, NOTE.format(most=MOST), TALL * len(grid))
    return drawn


def _panel(panel: Axes, own: pd.DataFrame) -> None:
    """The lines of one panel with their legend beside it."""
    lines = sorted(own.groupby(LINE, sort=False), key=lambda line: -np.ptp(line[1]["ours"]))
    differing = [key for key in LINE if own[key].nunique() > 1]
    colours = sns.color_palette("colorblind", MOST)
    ticks = sorted(own["scale"].unique())
    random = max(ticks) * 10**APART
    for (names, line), colour, marker in zip(lines[:MOST], colours, cycle(MARKERS), strict=False):
        label = " ".join(str(name) for key, name in zip(LINE, names, strict=True) if key in differing and name)
        for vectors, values in line.groupby("vectors", sort=False):
            values = values.sort_values("scale")
            panel.errorbar(
                np.full(len(values), random) if vectors == RANDOM else values["scale"],
                values["ours"],
                yerr=values["ours_spread"],
                color=colour,
                marker=marker,
                markersize=3.5,
                linewidth=1,
                capsize=1.5,
                fillstyle="none" if vectors == RANDOM else "full",
                label=None if vectors == RANDOM else label or "ours",
            )
        panel.axhline(line["published"].mean(), color=colour, linestyle="--", linewidth=0.9)
    panel.set_xscale("log")
    labels = [f"{tick:g}" for tick in ticks]
    if RANDOM in set(own["vectors"]):
        ticks, labels = [*ticks, random], [*labels, RANDOM]
    panel.set_xticks(ticks, labels)
    panel.minorticks_off()
    if differing:
        panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=6, handlelength=1.5)


@figure(
    "vector-scale",
    reads=["reproduction"],
    params=["vectors"],
    only=["vector-scale"],
    page="reproduction",
    experiment="published numbers",
    order=0,
)
def draw_vector_scale(drawing: Drawing) -> Figure:
    """Our values of published numbers about explanations (solid lines, vertically) by the factor on all word vectors
    (horizontally, logarithmic), and the published numbers (dashed lines in the same colour), one panel per study,
    dataset and quantity. Values are means over seeds and classes ± standard deviation over seeds; hollow markers, to
    the right, are random vectors. A solid line that is not level shows a number that depends on the length of word
    vectors.
    """
    return vector_scale(by_scale(drawing.frame(REPRODUCTION), drawing.facts["vectors"]), "The scale of word vectors")
