"""How much importance falls where the truth is known to be (Zhou et al. 2022, Figures 5 to 8).

Rows are those of the table `ground_truth`. Whiskers are 95 % intervals: over seeds if there are enough of them, else
the mean of each seed's interval over instances.
"""

from collections.abc import Iterable, Sequence
from itertools import cycle
from math import ceil
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from plumbline.data.manipulation import shapley_band
from plumbline.figures import style
from plumbline.figures.classes import mark
from plumbline.figures.conventions import ALPHA
from plumbline.figures.drawing import Drawing
from plumbline.protocols.bootstrap import FEWEST, mean_interval
from plumbline.protocols.ground_truth.schemas import GROUND_TRUTH, TRACE
from plumbline.protocols.roar.figures import MARKERS, finish, panel_figure
from plumbline.registry import figure
from plumbline.tables.chance import DEFINED

CELL = ["dataset", "variant", "model"]
# The usual name of the random measure, which comes last.
RANDOM = "random"
# What the variants of a manipulation have in common.
FOUND_IN = ["dataset", "manipulation", "model"]
ATTRIBUTED, REGION = "attributed_fraction", "region_fraction"
NOTHING = "No model here has a known truth."
NOT_ACCURATE = 0.95
# The class whose instances are manipulated, where only one is.
MANIPULATED = "1"
HIGHER = "Higher: more of the importance lies where the truth is."
WHISKERS = f"Whiskers: 95 % intervals, over seeds and variants from {FEWEST} on, else over texts or pictures."
CHANCE: dict[str, Any] = {"color": style.FAINT, "linewidth": 0.8, "linestyle": (0, (1, 1.5))}
BAND = "#d9e4d3"
# Inches that panels of a grid are high, and the least that they are wide.
TALL, WIDE = 0.95, 1.05
COLUMNS = 4


def attribution_by_region(truth: pd.DataFrame, title: str) -> Figure:
    """The share of importance in the effective region against its share of the picture or text (Figure 5).

    A panel for each measure and a point for each model and class: full for the class that is manipulated, hollow for
    the other. Labels must be drawn by a fair coin; models that are right in no more than 95 % are left out.
    """
    rows = _of_truth(truth)
    rows = rows[(rows["class"] != "all") & (rows["r"].isna() | (rows["r"] == 0.5))]
    accurate = rows[rows["accuracy"] > NOT_ACCURATE]
    if accurate.empty:
        return style.sentence_figure(f"{title}: {NOTHING if rows.empty else 'No model is right in more than 95 %.'}")
    points = means(accurate, [*CELL, "kind", "class", "measure"])
    measures, looks = ordered_measures(points), kind_looks(points["kind"])
    models = [len(some[CELL].drop_duplicates()) for some in (accurate, rows)]
    with style.theme():
        figure, panels, height = _panels(len(measures), 1.55)
        for panel, measure in zip(panels, measures, strict=True):
            for line in points[points["measure"] == measure].to_dict("records"):
                _point(panel, line, looks[line["kind"]])
            panel.axhline(1, **{**CHANCE, "linestyle": "-"}, zorder=1)
            panel.plot([0, 1], [0, 1], **CHANCE, zorder=1)
            panel.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.05), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
            panel.set_title(measure, loc="left", pad=4, color=style.measure_colour(measure))
        figure.supylabel("share of importance in the region", fontsize=8)
        keys = [mark(look["marker"], look["color"], 4, kind) for kind, look in looks.items()]
        keys += [_key("o", style.INK, "manipulated class"), _key("o", "white", "the other class")]
        keys.append(Line2D([], [], **CHANCE, label="the region's share"))
        left_out = "" if models[0] == models[1] else f", and {models[1] - models[0]} left out that are right in fewer"
        told = (
            f"Horizontally the region's share of all pixels or words, which is what knowing nothing gets. {HIGHER} "
            f"{models[0]} model{'s' * (models[0] > 1)} right in more than 95 %{left_out}."
        )
        finish(figure, title, keys, told, height)
    return figure


def attribution_by_accuracy(trace: pd.DataFrame, truth: pd.DataFrame, title: str) -> Figure:
    """The share of importance in the effective region while models learn, against their accuracy (Figure 6).

    `trace` has rows of the table of that name; `truth` says of which kind the manipulation of a variant is.
    """
    rows = trace[trace["truth"]].dropna(subset=[ATTRIBUTED])
    if rows.empty:
        return style.sentence_figure(f"{title}: No model was explained while it learned.")
    kinds = truth.drop_duplicates(["dataset", "variant"]).set_index(["dataset", "variant"])["kind"].to_dict()
    kind = [kinds.get(key, "") for key in zip(rows["dataset"], rows["variant"], strict=True)]
    rows = rows.assign(kind=kind, **{column: rows[column].astype(str) for column in (*CELL, "measure")})
    measures, looks = ordered_measures(rows), kind_looks(rows["kind"])
    with style.theme():
        figure, panels, height = _panels(len(measures), 1.45)
        left = min(0.5, float(rows["accuracy"].min()))
        for panel, measure in zip(panels, measures, strict=True):
            for _, run in rows[rows["measure"] == measure].groupby([*CELL, "seed"]):
                run = run.sort_values("epoch")
                look = {**looks[run["kind"].iloc[0]], "linewidth": 0.9, "markersize": 2.6, "markeredgewidth": 0}
                panel.plot(run["accuracy"], run[ATTRIBUTED], alpha=0.85, zorder=3, **look)
                panel.plot(run["accuracy"].iloc[-1], run[ATTRIBUTED].iloc[-1], zorder=4, **{**look, "markersize": 4.2})
                panel.plot(run["accuracy"], run[REGION], zorder=1.5, **CHANCE)
            panel.set(xlim=(left - 0.02, 1.02), ylim=(-0.02, 1.05), yticks=(0, 0.5, 1))
            panel.set_title(measure, loc="left", pad=4, color=style.measure_colour(measure))
        keys = [Line2D([], [], linewidth=1, markersize=4, label=kind, **look) for kind, look in looks.items()]
        runs = len(rows.drop_duplicates([*CELL, "seed"]))
        told = (
            "The share of importance in the region, dotted the region's share, against the accuracy on what is "
            f"explained, at the epochs that were kept; a line for each of {runs} runs, its last epoch large. {HIGHER} "
            "Measures that show what a model uses should rise with its accuracy."
        )
        finish(figure, title, keys, told, height)
    return figure


def attribution_by_visibility(truth: pd.DataFrame, title: str) -> Figure:
    """The share of importance in the effective region against how visible the manipulation is (Figure 7).

    Measure by manipulation, with a line for each draw, whose region is the same at all levels.
    """
    rows = _of_truth(truth)
    rows = rows[(rows["class"] == "all") & rows["level"].notna()]
    if rows.empty:
        return style.sentence_figure(f"{title}: No manipulation here has levels of visibility.")
    points = means(_by_model(rows), ["manipulation", "draw", "level", "measure"])
    told = (
        "Horizontally the level of visibility, from 1. A line for each draw of the region, with its share dotted. "
        f"{HIGHER} A model that is right must rely on the region at any level."
    )
    return _grid(points, "level", title, told, band=False)


def attribution_by_reassignment(truth: pd.DataFrame, title: str) -> Figure:
    """The share of importance in the effective region against how many labels were kept (Figure 8).

    Measure by manipulation, with a line for each draw; shaded is where the share of the region in the Shapley values
    must be, given the accuracy.
    """
    rows = _of_truth(truth)
    rows = rows[(rows["class"] == "all") & rows["r"].notna()]
    several = rows.groupby("manipulation", observed=True)["r"].transform("nunique") > 1
    if not several.any():
        return style.sentence_figure(f"{title}: No manipulation here has several shares of labels kept.")
    points = means(_by_model(rows[several]), ["manipulation", "draw", "r", "measure"])
    told = (
        "Horizontally r, the probability that a label was kept: the more, the more of the plain picture or text may be "
        "used too. A line for each draw, with the region's share dotted. Shaded: the region's share of the Shapley "
        "values, at least (2p − r − ½) / (2p − 1) at accuracy p."
    )
    return _grid(points, "r", title, told, band=True)


def truth_found(truth: pd.DataFrame, title: str = "How much of the truth measures find") -> Figure:
    """For every dataset, manipulation and model the share of importance on the truth, beside the truth's share of words
    or pixels, and how much of it the top words are; variants of a manipulation count together.

    Measures are sorted by what they find on average in a dataset. Where models of a dataset have several
    measures, those with one alone, such as models that select words, are left to figures of their own.
    """
    rows = _of_truth(truth)
    rows = rows[(rows["class"] == "all") & (rows["chance_bound"] < ALPHA)]
    if rows.empty:
        return style.sentence_figure(f"{title}: No model is known to use what was manipulated.")
    points = means(rows, [*FOUND_IN, "measure"])
    several = points.groupby(FOUND_IN)["measure"].transform("nunique") > 1
    points = points[several | ~several.groupby(points["dataset"]).transform("any")]
    lines = _lines_of_cells(points)
    with style.theme():
        columns = max(len(cells) for cells, _ in lines)
        figure = panel_figure(style.ONE_COLUMN if columns == 1 else style.TWO_COLUMNS)
        ratios = [len(measures) + 1 for _, measures in lines]
        grid = figure.subplots(len(lines), columns, sharex=True, squeeze=False, height_ratios=ratios)
        for panels, (cells, measures) in zip(grid, lines, strict=True):
            for panel, cell in zip(panels, cells, strict=False):
                _draw_found(panel, points[(points[FOUND_IN] == list(cell)).all(axis=1)], measures)
                panel.set_title("\n".join(cell), loc="left", pad=4, fontsize=7, parse_math=False)
            _hide(panels[len(cells) :])
            panels[0].set_yticklabels(measures)
        for column in grid.T:
            [panel for panel in column if panel.get_visible()][-1].tick_params(labelbottom=True)
        keys = [
            _key("o", style.INK, "share of importance on the truth"),
            _key("D", "white", "share of the truth among as many top words or pixels"),
            Line2D([], [], **CHANCE, label="share of words or pixels"),
        ]
        told = f"{HIGHER} On the dotted line: no more than knowing nothing gets, of either. {WHISKERS}"
        finish(figure, title, keys, told, 0.2 + sum(0.5 + 0.16 * ratio for ratio in ratios))
    return figure


def _lines_of_cells(points: pd.DataFrame) -> list[tuple[list[tuple[str, ...]], list[str]]]:
    """The cells of each line of panels, which are of one dataset, with the measures there, the best first."""
    lines = []
    for _, here in points.groupby("dataset"):
        measures = here.groupby("measure")["found"].mean().sort_values(ascending=False, na_position="last")
        cells = list(here[FOUND_IN].drop_duplicates().itertuples(index=False, name=None))
        lines += [(cells[first : first + COLUMNS], list(measures.index)) for first in range(0, len(cells), COLUMNS)]
    return lines


def _draw_found(panel: Axes, points: pd.DataFrame, measures: list[str]) -> None:
    panel.axvline(points[REGION].mean(), **CHANCE, zorder=1)
    for line in points.to_dict("records"):
        place, colour = measures.index(line["measure"]), style.measure_colour(line["measure"])
        for value, ends, up, marker, face in (
            (ATTRIBUTED, ("low", "high"), -0.17, "o", colour),
            ("found", ("found_low", "found_high"), 0.17, "D", "white"),
        ):
            look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 3.6, "markerfacecolor": face}
            panel.plot([line[end] for end in ends], [place + up] * 2, color=colour, linewidth=0.9, zorder=2)
            panel.plot(line[value], place + up, markeredgewidth=0.9, zorder=3, clip_on=False, **look)
    panel.set(xlim=(-0.03, 1.03), ylim=(len(measures) - 0.4, -0.6), xticks=(0, 0.5, 1))
    panel.set_yticks(range(len(measures)), [""] * len(measures))
    panel.tick_params(axis="y", length=0)


def means(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Means of what has the same keys, such as of its seeds, with the ends of the intervals of what is attributed
    (`low` and `high`) and of what is found."""
    found = []
    for key, group in rows.groupby(list(keys), observed=True, sort=True, dropna=False):
        shares = group[ATTRIBUTED].to_numpy(float)
        within = (group["ci_low"].mean(), group["ci_high"].mean())
        low, high = mean_interval(shares) if len(shares) >= FEWEST else within
        found_low, found_high = mean_interval(group["found"].to_numpy(float))
        numbers = {name: group[name].mean() for name in (ATTRIBUTED, REGION, "found", "auc", "accuracy")}
        ends = {"low": low, "high": high, "found_low": found_low, "found_high": found_high}
        found.append(dict(zip(keys, key, strict=True)) | numbers | ends)
    return pd.DataFrame(found)


def ordered_measures(rows: pd.DataFrame) -> list[str]:
    """In the order in which figures show them, with random last."""
    return sorted(style.ordered(rows["measure"]), key=lambda measure: measure == RANDOM)


def kind_looks(kinds: Iterable[str]) -> dict[str, dict[str, Any]]:
    """A colour and a marker for each kind of manipulation."""
    # In an order that sets neighbours apart.
    colours = [style.MUTED[place] for place in (6, 0, 4, 2, 8, 1, 5, 3, 7)]
    return {
        kind: {"color": colour, "marker": marker}
        for kind, colour, marker in zip(sorted(set(kinds)), cycle(colours), cycle(MARKERS), strict=False)
    }


def _of_truth(truth: pd.DataFrame) -> pd.DataFrame:
    """The rows about the truth that have a number, with words in place of categories."""
    rows = truth[truth["truth"] & truth["status"].isin(DEFINED)].dropna(subset=[ATTRIBUTED])
    return rows.assign(**{name: rows[name].astype(str) for name in (*CELL, "measure", "manipulation", "kind", "class")})


def _by_model(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the model beside the manipulation, if there are several."""
    several = rows["model"].nunique() > 1
    return rows.assign(manipulation=rows["manipulation"] + ", " + rows["model"]) if several else rows


def _point(panel: Axes, line: dict[Any, Any], look: dict[str, Any]) -> None:
    panel.plot([line[REGION]] * 2, [line["low"], line["high"]], color=look["color"], linewidth=0.7, zorder=2)
    full = line["class"] == MANIPULATED
    face = look["color"] if full else "white"
    panel.plot(
        line[REGION], line[ATTRIBUTED], markersize=3.6, markerfacecolor=face, markeredgewidth=0.8, zorder=3, **look
    )


def _key(marker: str, face: str, label: str) -> Line2D:
    """A marker in a legend, full or hollow."""
    key = mark(marker, style.INK, 4, label)
    key.set_markerfacecolor(face)
    return key


def _panels(count: int, tall: float) -> tuple[Figure, list[Axes], float]:
    """A figure with a panel for each measure, these and the inches that they take."""
    columns = min(count, COLUMNS)
    lines = ceil(count / columns)
    figure = panel_figure(style.ONE_COLUMN if columns == 1 else style.TWO_COLUMNS)
    grid = list(figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).flat)
    _hide(grid[count:])
    # What hides the panels of the last line hides the numbers below those above them.
    for place in range(max(0, count - columns), count):
        grid[place].tick_params(labelbottom=True)
    return figure, grid[:count], lines * tall * (1.4 if columns == 1 else 1)


def _hide(panels: Iterable[Axes]) -> None:
    for panel in panels:
        panel.set_visible(False)


def _grid(points: pd.DataFrame, at: str, title: str, told: str, band: bool) -> Figure:
    """Measures from top to bottom, manipulations from left to right, and in each a line for each draw."""
    measures, names = ordered_measures(points), sorted(points["manipulation"].unique())
    draws = sorted(points["draw"].unique())
    marker = dict(zip(draws, cycle(MARKERS), strict=False))
    with style.theme():
        figure = panel_figure(max(style.TWO_COLUMNS if len(names) > 2 else style.ONE_COLUMN, 0.7 + WIDE * len(names)))
        grid = figure.subplots(len(measures), len(names), sharex="col", sharey=True, squeeze=False)
        for panels, measure in zip(grid, measures, strict=True):
            for panel, name in zip(panels, names, strict=True):
                here = points[points["manipulation"] == name]
                if band:
                    _shade(panel, here)
                for draw, line in here[here["measure"] == measure].groupby("draw"):
                    _draw_line(panel, line.sort_values(at), at, style.measure_colour(measure), marker[draw])
                panel.set(ylim=(-0.03, 1.06), yticks=(0, 0.5, 1), xticks=sorted(here[at].unique()))
                panel.margins(x=0.06)
            panels[0].set_ylabel("\n".join(wrap(measure, 13)), color=style.measure_colour(measure), fontsize=7)
        for panel, name in zip(grid[0], names, strict=True):
            panel.set_title("\n".join(wrap(name, 18)), loc="left", pad=4, fontsize=7.5, parse_math=False)
        for panel in grid[-1]:
            panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}".removeprefix("0") or "0")
        keys = [
            Line2D([], [], color=style.INK, linewidth=1, markersize=4, marker=m, label=f"draw {d:g}")
            for d, m in marker.items()
        ]
        keys.append(Line2D([], [], **CHANCE, label="the region's share"))
        if band:
            keys.append(Patch(color=BAND, label="the region's part in Shapley values"))  # type: ignore[arg-type]
        finish(figure, title, keys, told, TALL * len(measures) + 0.2)
    return figure


def _draw_line(panel: Axes, line: pd.DataFrame, at: str, colour: str, marker: str) -> None:
    panel.fill_between(line[at], line["low"], line["high"], color=colour, alpha=0.15, linewidth=0, zorder=2)
    panel.plot(
        line[at],
        line[ATTRIBUTED],
        color=colour,
        marker=marker,
        markersize=2.8,
        linewidth=1,
        zorder=3,
        markeredgewidth=0,
    )
    panel.plot(line[at], line[REGION], zorder=1.5, **CHANCE)


def _shade(panel: Axes, points: pd.DataFrame) -> None:
    """From the least share that the Shapley values give the region, at the models' mean accuracy, to 1."""
    accuracy = points.groupby("r")["accuracy"].mean()
    accuracy = accuracy[accuracy > 0.5]
    pairs = zip(accuracy.index.tolist(), accuracy.tolist(), strict=True)
    least = [float(np.clip(shapley_band(r, p)[0], 0, 1)) for r, p in pairs]
    panel.fill_between(accuracy.index, least, 1, color=BAND, linewidth=0, zorder=0.5)


@figure(
    "attribution-by-region",
    reads=["ground_truth"],
    cells="ground_truth",
    per=["dataset"],
    only=["images"],
    page="truth",
    experiment="ground truth",
    order=170,
    caption=(
        "The share of importance on the region that the label follows, against the region’s share of the "
        "picture (Zhou et al.’s Figure 5): full points for manipulated pictures, hollow ones for the others. "
        "A measure that finds the region is near the top; on the rising line it knows nothing of it."
    ),
)
def draw_by_region(drawing: Drawing) -> Figure:
    """Against the region's share of the image."""
    return attribution_by_region(drawing.rows(GROUND_TRUTH), drawing.title)


@figure(
    "attribution-by-visibility",
    reads=["ground_truth"],
    cells="ground_truth",
    per=["dataset"],
    only=["visibility"],
    page="truth",
    experiment="ground truth",
    order=190,
    caption=(
        "The share of importance on the region by how visible the manipulation is, a line for each region "
        "(Zhou et al.’s Figure 7)."
    ),
)
def draw_by_visibility(drawing: Drawing) -> Figure:
    """By how visible the manipulation is."""
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
    caption=(
        "The share of importance on the region by how many labels were kept, and so follow the picture too "
        "(Zhou et al.’s Figure 8). The shaded band is where the region’s share in the Shapley values must be."
    ),
)
def draw_by_reassignment(drawing: Drawing) -> Figure:
    """By how many labels were kept."""
    return attribution_by_reassignment(drawing.rows(GROUND_TRUTH), drawing.title)


@figure(
    "attribution-by-accuracy",
    reads=["trace", "ground_truth"],
    cells="ground_truth",
    per=["dataset"],
    only=["traced"],
    page="truth",
    experiment="ground truth",
    order=180,
    caption=(
        "The share of importance on the region while models learn to use it, against their accuracy, a line "
        "for each model (Zhou et al.’s Figure 6). It should rise with the accuracy."
    ),
)
def draw_by_accuracy(drawing: Drawing) -> Figure:
    """While models learn."""
    return attribution_by_accuracy(drawing.rows(TRACE), drawing.frame(GROUND_TRUTH), drawing.title)


@figure(
    "truth-found",
    reads=["ground_truth"],
    page="truth",
    experiment="ground truth",
    order=250,
    caption=(
        "How much of the truth each measure finds: the share of importance on it, beside its share of words "
        "or pixels, and how many of as many top words belong to it."
    ),
)
def draw_found(drawing: Drawing) -> Figure:
    """All measures at a glance."""
    return truth_found(drawing.frame(GROUND_TRUTH))
