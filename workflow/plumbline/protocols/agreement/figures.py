"""Agreement of measures: histograms of Kendall's τ (Jain & Wallace 2019, Figure 2) and the matrix of all pairs.

`taus` is a frame with one row per seed, instance and pair of measures and Kendall's τ in `value`; see `kendall_rows`.
"""

from itertools import combinations
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from plumbline.figures import style
from plumbline.figures.classes import Group, add_legend, groups_of, mark_means, mean_keys
from plumbline.figures.drawing import Drawing
from plumbline.figures.intervals import interval
from plumbline.figures.layout import hide_unused, title_above
from plumbline.protocols.agreement.selections import fewest_tokens
from plumbline.protocols.schemas import SCORES
from plumbline.registry import figure
from plumbline.store import read_table

BINS = np.linspace(-1, 1, 31)
TICKS = [-1, -0.5, 0, 0.5, 1]
TICK_LABELS = ["−1", "−.5", "0", ".5", "1"]
NO_TAU = "no pair of measures has a defined Kendall τ."


def kendall_rows(scores: pa.Table) -> pd.DataFrame:
    """The rows of a table `scores` with a defined Kendall τ, for the smallest ranked set of tokens."""
    defined = pc.and_(pc.equal(scores["statistic"], "kendall"), pc.equal(scores["status"], "ok"))
    frame = scores.filter(defined).drop_columns(["statistic", "status", "reason", "p_value"]).to_pandas()
    return fewest_tokens(frame).drop(columns="tokens").astype({"split": str, "measure_a": str, "measure_b": str})


def compared_measures(taus: pd.DataFrame) -> list[str]:
    """All measures of a frame, in the order of the figures."""
    return style.ordered([*taus["measure_a"].unique(), *taus["measure_b"].unique()])


def pair_rows(taus: pd.DataFrame, a: str, b: str) -> pd.DataFrame:
    """The rows of a pair of measures, in either order."""
    forward = (taus["measure_a"] == a) & (taus["measure_b"] == b)
    reverse = (taus["measure_a"] == b) & (taus["measure_b"] == a)
    return taus[forward | reverse]


def tau_histogram(taus: pd.DataFrame, classes: list[str], title: str) -> Figure:
    """Histograms of τ between attention and every other measure, one colour per predicted class, all seeds pooled.

    Each class sums to 1. A triangle marks a class's mean, its whisker the 95 % interval over texts, dots its seeds.
    """
    if taus.empty:
        return style.sentence_figure(f"{title}: {NO_TAU}")
    measures = compared_measures(taus)
    reference = style.reference_measure(measures)
    others = [measure for measure in measures if measure != reference]
    groups = groups_of(taus, classes)
    columns = min(3, len(others)) if len(others) < 9 else 4
    rows = ceil(len(others) / columns)
    with style.theme():
        width = style.TWO_COLUMNS if columns > 1 else style.ONE_COLUMN
        figure = style.new_figure(width, 1.05 + 1.55 * rows)
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        panels = hide_unused(grid, len(others))
        pairs = [[group._replace(rows=pair_rows(group.rows, reference, other)) for group in groups] for other in others]
        for panel, other, pair in zip(panels, others, pairs, strict=True):
            _histogram(panel, pair, other)
        bars = [bar for panel in panels for bar in panel.patches if isinstance(bar, Rectangle)]
        tallest = max(float(bar.get_height()) for bar in bars)
        for panel, pair in zip(panels, pairs, strict=True):
            panel.set_ylim(0, tallest)
            mark_means(panel, pair, tallest)
        figure.supxlabel(f"Kendall τ with {reference}", fontsize=8)
        figure.supylabel("share of texts", fontsize=8)
        add_legend(figure, title, groups, mean_keys(taus["seed"].nunique()))
    return figure


def _histogram(panel: Axes, groups: list[Group], measure: str) -> None:
    sns.histplot(
        pd.concat([group.rows.assign(**{"class": group.name}) for group in groups]),
        x="value",
        hue="class",
        hue_order=[group.name for group in groups],
        palette=[group.colour for group in groups],
        bins=BINS.tolist(),
        stat="probability",
        common_norm=False,
        alpha=0.6,
        linewidth=0.2,
        edgecolor="white",
        legend=False,
        ax=panel,
    )
    panel.axvline(0, color=style.INK, linewidth=0.7, zorder=0.9)
    panel.set(xlim=(-1, 1), xticks=TICKS, xticklabels=TICK_LABELS, xlabel="", ylabel="")
    panel.grid(visible=False, axis="x")
    panel.set_title(measure, loc="left", pad=5)
    # The measure's colour of all figures on the upper edge of its panel.
    panel.spines["top"].set(visible=True, color=style.measure_colour(measure), linewidth=2.5)


def tau_matrix(taus: pd.DataFrame, title: str) -> Figure:
    """Symmetric heatmap of the mean τ of every pair of measures, with its standard deviation over seeds."""
    if taus.empty:
        return style.sentence_figure(f"{title}: {NO_TAU}")
    measures = compared_measures(taus)
    mean, spread = mean_and_spread(taus, measures)
    texts = (mean.map(style.signed) + "\n±" + spread.map("{:.2f}".format)).where(mean.notna(), "")
    side = 0.58 * len(measures) if len(measures) > 4 else 0.75 * len(measures)
    with style.theme():
        figure = style.new_figure(side + 2.2, side + 1.45)
        panel = figure.subplots()
        colours = sns.color_palette("vlag", as_cmap=True)
        sns.heatmap(
            mean,
            annot=texts,
            fmt="",
            cmap=colours,
            vmin=-1,
            vmax=1,
            square=True,
            linewidths=1.5,
            annot_kws={"fontsize": 6.5, "linespacing": 1.15},
            cbar_kws={"label": "mean Kendall τ", "shrink": 0.8, "aspect": 25, "ticks": TICKS},
            ax=panel,
        )
        for text in panel.texts:
            column, row = map(int, text.get_position())
            text.set_color(style.ink_on(colours((mean.to_numpy()[row, column] + 1) / 2)))
        panel.set(xlabel="", ylabel="")
        panel.set_facecolor("#dfe3e8")
        panel.grid(visible=False)
        panel.set_xticklabels(panel.get_xticklabels(), rotation=40, ha="right", rotation_mode="anchor")
        panel.set_yticklabels(panel.get_yticklabels(), rotation=0)
        colour_names(panel, measures, measures)
        seeds = taus["seed"].nunique()
        spread_of = f"standard deviation over {seeds} seeds" if seeds > 1 else "half of the 95 % interval over texts"
        title_above(figure, title, f"mean ± {spread_of}")
    return figure


def mean_and_spread(taus: pd.DataFrame, measures: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mean over seeds of a seed's mean τ, and the standard deviation over seeds; [M, M], NaN on the diagonal.

    With one seed the spread is half the 95 % interval over texts.
    """
    mean = pd.DataFrame(np.nan, index=measures, columns=measures)
    spread = mean.copy()
    several = taus["seed"].nunique() > 1
    for a, b in combinations(measures, 2):
        pair = pair_rows(taus, a, b)
        if pair.empty:
            continue
        seeds = pair.groupby("seed")["value"].mean()
        mean.loc[a, b] = mean.loc[b, a] = seeds.mean()
        spread.loc[a, b] = spread.loc[b, a] = seeds.std(ddof=0) if several else interval(pair)[1]
    return mean, spread


def colour_names(panel: Axes, rows: list[str], columns: list[str]) -> None:
    """A stripe in the measure's colour next to its row label and its column label."""
    for position, measure in enumerate(rows):
        panel.plot([-0.07, -0.07], [position + 0.04, position + 0.96], **_stripe(measure))
    for position, measure in enumerate(columns):
        panel.plot([position + 0.04, position + 0.96], [len(rows) + 0.07] * 2, **_stripe(measure))
    panel.set(xlim=(0, len(columns)), ylim=(len(rows), 0))
    panel.tick_params(length=0, pad=8)


def _stripe(measure: str) -> dict[str, Any]:
    return {"color": style.measure_colour(measure), "linewidth": 4, "solid_capstyle": "butt", "clip_on": False}


def read_taus(drawing: Drawing) -> pd.DataFrame:
    """Kendall's τ of every instance and pair of measures in the cells of the figure."""
    files = drawing.here("scores:agreement")
    return pd.concat(
        kendall_rows(read_table(path, SCORES)).assign(dataset=cell["dataset"], model=cell["model"])
        for cell, path in files
    )


@figure(
    "tau-histogram",
    reads=["scores:agreement", "datasets:agreement"],
    cells="agreement",
    per=["dataset", "model"],
    page="attention",
    experiment="correlation",
    order=20,
)
def draw_histogram(drawing: Drawing) -> Figure:
    """Kendall τ between attention and each other measure (panels), for a model without attention between the measure
    below the horizontal axis and each other one (Jain & Wallace’s Figure 2). Horizontal axis: τ, 1 for the same order
    of the words, 0 for unrelated orders, −1 for opposite orders. Vertical axis: share of the texts of a predicted class
    (colour), for all seeds together. Triangles are class means with 95 % intervals over texts, dots the means of single
    seeds.
    """
    classes = drawing.classes("datasets:agreement")[drawing.dataset]
    return tau_histogram(read_taus(drawing), classes, drawing.title)


@figure(
    "tau-matrix",
    reads=["scores:agreement"],
    cells="agreement",
    per=["dataset", "model"],
    page="disagreement",
    experiment="correlation",
    order=30,
)
def draw_matrix(drawing: Drawing) -> Figure:
    """Kendall τ between every two measures (rows and columns): mean over texts, then mean ± standard deviation over
    seeds; for a single seed, ± half of the 95 % interval over texts. 1 is the same order of the words, 0 unrelated
    orders, −1 opposite orders. Agreement does not show that either measure is faithful.
    """
    return tau_matrix(read_taus(drawing), drawing.title)
