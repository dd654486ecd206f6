"""How alike measures rank words: histograms (Jain & Wallace 2019, Figure 2) and the matrix of all pairs.

Every function takes a frame with one row per seed, split, instance and pair of measures, with the columns of the table
`scores` and only Kendall's τ in `value`; see `kendall`.
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
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from plumbline.figures import style
from plumbline.figures.classes import add_legend, groups_of
from plumbline.figures.drawing import Drawing
from plumbline.figures.intervals import interval
from plumbline.protocols.agreement.table import fewest_tokens
from plumbline.protocols.schemas import SCORES
from plumbline.registry import figure
from plumbline.store import read_table

BINS = np.linspace(-1, 1, 31)
TICKS = [-1, -0.5, 0, 0.5, 1]
TICK_LABELS = ["−1", "−.5", "0", ".5", "1"]
NOTHING = "No pair of measures has a defined Kendall τ here."


def kendall(scores: pa.Table) -> pd.DataFrame:
    """The rows of a table `scores` that hold a defined Kendall τ, of the fewest tokens that were ranked."""
    defined = pc.and_(pc.equal(scores["statistic"], "kendall"), pc.equal(scores["status"], "ok"))
    frame = scores.filter(defined).drop_columns(["statistic", "status", "reason", "p_value"]).to_pandas()
    return fewest_tokens(frame).drop(columns="tokens").astype({"split": str, "measure_a": str, "measure_b": str})


def compared_measures(taus: pd.DataFrame) -> list[str]:
    """All measures of a frame, in the order in which figures show them."""
    return style.ordered([*taus["measure_a"].unique(), *taus["measure_b"].unique()])


def of_pair(taus: pd.DataFrame, one: str, other: str) -> pd.DataFrame:
    """The rows about a pair of measures, whichever of the two stands first."""
    forth = (taus["measure_a"] == one) & (taus["measure_b"] == other)
    back = (taus["measure_a"] == other) & (taus["measure_b"] == one)
    return taus[forth | back]


def tau_histogram(taus: pd.DataFrame, classes: list[str], title: str) -> Figure:
    """Histograms of τ between attention and every other measure, one colour per predicted class, all seeds pooled.

    Each class sums to 1. A triangle marks a class's mean, its whisker the 95 % interval over texts, dots its seeds.
    """
    if taus.empty:
        return style.sentence_figure(f"{title}: {NOTHING}")
    measures = compared_measures(taus)
    reference = style.reference_measure(measures)
    others = [measure for measure in measures if measure != reference]
    groups = groups_of(taus, classes)
    taus = pd.concat([group.rows.assign(**{"class": group.name}) for group in groups])
    names, colours = [group.name for group in groups], [group.colour for group in groups]
    columns = min(3, len(others)) if len(others) < 9 else 4
    rows = ceil(len(others) / columns)
    with style.theme():
        width = style.TWO_COLUMNS if columns > 1 else style.ONE_COLUMN
        figure = style.new_figure(width, 1.05 + 1.55 * rows)
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        pairs = {other: of_pair(taus, reference, other) for other in others}
        panels = list(grid.flat)[: len(others)]
        for panel, (other, pair) in zip(panels, pairs.items(), strict=True):
            _histogram(panel, pair, other, names, colours)
        _mark_means(panels, list(pairs.values()), names, colours)
        _leave_out(grid, len(others))
        figure.supxlabel(f"Kendall τ with {reference}", fontsize=8)
        figure.supylabel("share of texts", fontsize=8)
        add_legend(figure, title, groups, _keys(taus["seed"].nunique()))
    return figure


def _histogram(panel: Axes, taus: pd.DataFrame, other: str, names: list[str], colours: list[str]) -> None:
    sns.histplot(
        taus,
        x="value",
        hue="class",
        hue_order=names,
        palette=colours,
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
    panel.set_title(other, loc="left", pad=5)
    # The measure's own colour, as everywhere else, on the upper edge of its panel.
    panel.spines["top"].set(visible=True, color=style.measure_colour(other), linewidth=2.5)


def _mark_means(panels: list[Axes], pairs: list[pd.DataFrame], names: list[str], colours: list[str]) -> None:
    """Above the bars, one line per class: its mean, the interval of the mean, and the mean of each seed."""
    tallest = max(float(bar.get_height()) for panel in panels for bar in panel.patches if isinstance(bar, Rectangle))
    step = 0.09 * tallest
    # The marks stand above the axis of shares, which has no numbers there.
    panels[0].set_ylim(0, tallest)
    shares = [tick for tick in panels[0].get_yticks() if tick <= tallest]
    for panel, taus in zip(panels, pairs, strict=True):
        panel.set(ylim=(0, tallest + step * (len(names) + 0.9)), yticks=shares)
        for line, (name, colour) in enumerate(zip(names, colours, strict=True), start=1):
            here = taus[taus["class"] == name]
            if here.empty:
                continue
            mean, half = interval(here)
            height = tallest + step * line
            whisker: dict[str, Any] = {
                "fmt": "v",
                "color": colour,
                "markersize": 4.5,
                "linewidth": 1.2,
                "zorder": 3,
                "clip_on": False,
            }
            panel.errorbar(mean, height, xerr=half, **whisker)
            seeds = here.groupby("seed")["value"].mean()
            if len(seeds) > 1:
                panel.plot(seeds, [height] * len(seeds), ".", color=style.INK, markersize=2.5, zorder=4, clip_on=False)


def _leave_out(grid: np.ndarray, used: int) -> None:
    """Hide the panels that nothing is drawn in; the ones above them then carry the numbers of the axis."""
    columns = grid.shape[1]
    for position, panel in enumerate(grid.flat):
        if position >= used:
            panel.set_visible(False)
        elif position + columns >= used:
            panel.tick_params(labelbottom=True)


def _keys(seeds: int) -> list[Line2D]:
    """What the marks above the bars are."""
    keys = [Line2D([], [], color=style.FAINT, marker="v", markersize=4.5, label="mean, 95 % interval over texts")]
    if seeds > 1:
        each = f"each of {seeds} seeds"
        keys.append(Line2D([], [], color=style.INK, marker=".", markersize=4, linestyle="", label=each))
    return keys


def tau_matrix(taus: pd.DataFrame, title: str) -> Figure:
    """Mean τ of every pair of measures as a symmetric heatmap; each cell has the mean and its spread over seeds."""
    if taus.empty:
        return style.sentence_figure(f"{title}: {NOTHING}")
    measures = compared_measures(taus)
    mean, spread = matrices(taus, measures)
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
            column, row = (int(place) for place in text.get_position())
            text.set_color(style.ink_on(colours((mean.to_numpy()[row, column] + 1) / 2)))
        panel.set(xlabel="", ylabel="")
        panel.set_facecolor("#dfe3e8")
        panel.grid(visible=False)
        panel.set_xticklabels(panel.get_xticklabels(), rotation=40, ha="right", rotation_mode="anchor")
        panel.set_yticklabels(panel.get_yticklabels(), rotation=0)
        colour_names(panel, measures, measures)
        seeds = taus["seed"].nunique()
        told = f"± spread over {seeds} seeds" if seeds > 1 else "± 95 % interval over texts"
        figure.suptitle(f"{title}\n", x=0.02, ha="left", fontsize=9)
        figure.text(
            0.02,
            0.995 - 0.24 / figure.get_figheight(),
            f"each cell: mean {told}",
            va="top",
            fontsize=7,
            color=style.FAINT,
        )
    return figure


def matrices(taus: pd.DataFrame, measures: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mean over seeds of a seed's mean τ, and the standard deviation over seeds; [M, M], NaN on the diagonal.

    One seed has no spread: then it is half the 95 % interval over texts.
    """
    mean = pd.DataFrame(np.nan, index=measures, columns=measures)
    spread = mean.copy()
    several = taus["seed"].nunique() > 1
    for one, other in combinations(measures, 2):
        pair = of_pair(taus, one, other)
        if pair.empty:
            continue
        seeds = pair.groupby("seed")["value"].mean()
        mean.loc[one, other] = mean.loc[other, one] = seeds.mean()
        spread.loc[one, other] = spread.loc[other, one] = seeds.std(ddof=0) if several else interval(pair)[1]
    return mean, spread


def colour_names(panel: Axes, rows: list[str], columns: list[str]) -> None:
    """A stripe in the measure's colour at the left edge of its row and the lower edge of its column."""
    for position, measure in enumerate(rows):
        panel.plot([-0.07, -0.07], [position + 0.04, position + 0.96], **_stripe(measure))
    for position, measure in enumerate(columns):
        panel.plot([position + 0.04, position + 0.96], [len(rows) + 0.07] * 2, **_stripe(measure))
    panel.set(xlim=(0, len(columns)), ylim=(len(rows), 0))
    panel.tick_params(length=0, pad=8)


def _stripe(measure: str) -> dict[str, Any]:
    return {"color": style.measure_colour(measure), "linewidth": 4, "solid_capstyle": "butt", "clip_on": False}


def all_taus(drawing: Drawing) -> pd.DataFrame:
    """Kendall's τ of every instance and pair of measures, of the cells that the figure is about."""
    files = drawing.here("scores:agreement")
    return pd.concat(
        kendall(read_table(path, SCORES)).assign(dataset=cell["dataset"], model=cell["model"]) for cell, path in files
    )


@figure(
    "tau-histogram",
    reads=["scores:agreement", "datasets:agreement"],
    cells="agreement",
    per=["dataset", "model"],
    page="attention",
    experiment="correlation",
    order=20,
    caption="Kendall τ between attention and each other measure, text by text, by predicted class.",
)
def draw_histogram(drawing: Drawing) -> Figure:
    """Attention against each other measure, by predicted class."""
    classes = drawing.classes("datasets:agreement")[drawing.dataset]
    return tau_histogram(all_taus(drawing), classes, drawing.title)


@figure(
    "tau-matrix",
    reads=["scores:agreement"],
    cells="agreement",
    per=["dataset", "model"],
    page="disagreement",
    experiment="correlation",
    order=30,
    caption="Mean Kendall τ of every pair of measures.",
)
def draw_matrix(drawing: Drawing) -> Figure:
    """Every pair of measures."""
    return tau_matrix(all_taus(drawing), drawing.title)
