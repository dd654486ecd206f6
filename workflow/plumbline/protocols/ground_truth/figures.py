"""Importance on the effective region, and how much of the truth measures find (Zhou et al. 2022, Figures 5 and 6).

Rows are those of the table `ground_truth`. Whiskers are 95 % intervals: over seeds if there are enough of them, else
the mean of each seed's interval over instances.
"""

from collections.abc import Iterable, Sequence
from itertools import cycle
from math import ceil
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.figures import style
from plumbline.figures.classes import mark
from plumbline.figures.conventions import ALPHA
from plumbline.figures.drawing import Drawing
from plumbline.figures.layout import MARKERS, finish, hide_unused, panel_figure
from plumbline.protocols.bootstrap import FEWEST, mean_interval
from plumbline.protocols.ground_truth.schemas import GROUND_TRUTH, TRACE
from plumbline.registry import figure
from plumbline.tables.chance import DEFINED

CELL = ["dataset", "variant", "model"]
# The usual name of the random measure, which comes last.
RANDOM = "random"
# The keys that a manipulation's variants share.
MANIPULATION_KEYS = ["dataset", "manipulation", "model"]
ATTRIBUTED, REGION = "attributed_fraction", "region_fraction"
NO_MODEL = "no model was trained on data with a known truth."
MIN_ACCURACY = 0.95
# The class whose instances are manipulated, where only one is.
MANIPULATED = "1"
HIGHER = "Higher is better: more of the importance is on the truth."
WHISKERS = f"Whiskers: 95 % intervals over seeds and variants or, for fewer than {FEWEST}, over texts or images."
CHANCE: dict[str, Any] = {"color": style.FAINT, "linewidth": 0.8, "linestyle": (0, (1, 1.5))}
POINT: dict[str, Any] = {"markersize": 3.6, "zorder": 3}
COLUMNS = 4


def attribution_by_region(truth: pd.DataFrame, title: str) -> Figure:
    """The share of importance in the effective region against its share of the image or text (Figure 5).

    A panel for each measure and a point for each model and class: full for the manipulated class, hollow for the other.
    Only variants with random labels (r = 0.5) and models with an accuracy above 95 %.
    """
    rows = truth_rows(truth)
    rows = rows[(rows["class"] != "all") & (rows["r"].isna() | (rows["r"] == 0.5))]
    accurate = rows[rows["accuracy"] > MIN_ACCURACY]
    if accurate.empty:
        return style.sentence_figure(f"{title}: {NO_MODEL if rows.empty else 'no model has an accuracy above 95 %.'}")
    points = average_rows(accurate, [*CELL, "kind", "class", "measure"])
    styles = kind_styles(points["kind"])
    count, total = (len(models[CELL].drop_duplicates()) for models in (accurate, rows))
    with style.theme():
        figure, panels, height = _measure_panels(points, 1.55)
        for measure, panel in panels.items():
            for point in points[points["measure"] == measure].to_dict("records"):
                colour, marker = styles[point["kind"]].values()
                face = colour if point["class"] == MANIPULATED else "white"
                panel.plot([point[REGION]] * 2, [point["low"], point["high"]], color=colour, linewidth=0.7, zorder=2)
                dot = {**POINT, "color": colour, "marker": marker, "markerfacecolor": face}
                panel.plot(point[REGION], point[ATTRIBUTED], markeredgewidth=0.8, **dot)
            panel.axhline(1, **{**CHANCE, "linestyle": "-"}, zorder=1)
            panel.plot([0, 1], [0, 1], **CHANCE, zorder=1)
            panel.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.05), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        figure.supylabel("share of importance in the region", fontsize=8)
        keys = [mark(marker["marker"], marker["color"], 4, kind) for kind, marker in styles.items()]
        keys.append(mark("o", style.INK, 4, "manipulated class"))
        keys.append(mark("o", style.INK, 4, "other class", markerfacecolor="white"))
        keys.append(Line2D([], [], **CHANCE, label="region's share"))
        left_out = "" if count == total else f"; {total - count} less accurate left out"
        note = (
            "Horizontal axis: the region's share of all pixels or words, which equal importances give. "
            f"{HIGHER} {count} model{'s' * (count > 1)} with an accuracy above 95 %{left_out}."
        )
        finish(figure, title, keys, note, height)
    return figure


def attribution_by_accuracy(trace: pd.DataFrame, truth: pd.DataFrame, title: str) -> Figure:
    """The share of importance in the effective region during training, against the model's accuracy (Figure 6).

    `trace` has rows of the table of that name; `truth` gives the kind of each variant's manipulation.
    """
    rows = trace[trace["truth"]].dropna(subset=[ATTRIBUTED])
    if rows.empty:
        return style.sentence_figure(f"{title}: no model was explained during training.")
    kinds = truth.drop_duplicates(["dataset", "variant"]).set_index(["dataset", "variant"])["kind"].to_dict()
    kind = [kinds.get(key, "") for key in zip(rows["dataset"], rows["variant"], strict=True)]
    rows = rows.assign(kind=kind, **{column: rows[column].astype(str) for column in (*CELL, "measure")})
    styles = kind_styles(rows["kind"])
    with style.theme():
        figure, panels, height = _measure_panels(rows, 1.45)
        left = min(0.5, float(rows["accuracy"].min()))
        for measure, panel in panels.items():
            for _, run in rows[rows["measure"] == measure].groupby([*CELL, "seed"]):
                run = run.sort_values("epoch")
                line = {**styles[run["kind"].iloc[0]], "linewidth": 0.9, "markersize": 2.6, "markeredgewidth": 0}
                panel.plot(run["accuracy"], run[ATTRIBUTED], alpha=0.85, zorder=3, **line)
                panel.plot(run["accuracy"].iloc[-1], run[ATTRIBUTED].iloc[-1], zorder=4, **{**line, "markersize": 4.2})
                panel.plot(run["accuracy"], run[REGION], zorder=1.5, **CHANCE)
            panel.set(xlim=(left - 0.02, 1.02), ylim=(-0.02, 1.05), yticks=(0, 0.5, 1))
        keys = [Line2D([], [], linewidth=1, markersize=4, label=kind, **line) for kind, line in styles.items()]
        runs = len(rows.drop_duplicates([*CELL, "seed"]))
        note = (
            "Vertical axis: share of importance in the region (dotted: the region's share). Horizontal axis: accuracy "
            f"on the explained instances at the stored epochs; a line for each of {runs} runs, its last epoch large. "
            f"{HIGHER} It should rise with the accuracy."
        )
        finish(figure, title, keys, note, height)
    return figure


def truth_found(truth: pd.DataFrame, title: str = "How much of the truth each measure finds") -> Figure:
    """By dataset, manipulation and model the share of importance on the truth, with the truth's share of words or
    pixels, and the share of the truth among the top words; a manipulation's variants are averaged.

    Measures are sorted by their mean `found` in a dataset. If some models of a dataset have several measures, those
    with a single one, such as rationale models, are left to figures of their own.
    """
    rows = truth_rows(truth)
    rows = rows[(rows["class"] == "all") & (rows["chance_bound"] < ALPHA)]
    if rows.empty:
        return style.sentence_figure(f"{title}: no model is known to use the manipulated features.")
    points = average_rows(rows, [*MANIPULATION_KEYS, "measure"])
    several = points.groupby(MANIPULATION_KEYS)["measure"].transform("nunique") > 1
    points = points[several | ~several.groupby(points["dataset"]).transform("any")]
    panel_rows = _panel_rows(points)
    with style.theme():
        columns = max(len(cells) for cells, _ in panel_rows)
        figure = panel_figure(style.ONE_COLUMN if columns == 1 else style.TWO_COLUMNS)
        ratios = [len(measures) + 1 for _, measures in panel_rows]
        grid = figure.subplots(len(panel_rows), columns, sharex=True, squeeze=False, height_ratios=ratios)
        for panels, (cells, measures) in zip(grid, panel_rows, strict=True):
            for panel, cell in zip(panels, cells, strict=False):
                _plot_found(panel, points[(points[MANIPULATION_KEYS] == list(cell)).all(axis=1)], measures)
                panel.set_title("\n".join(cell), loc="left", pad=4, fontsize=7, parse_math=False)
            for panel in panels[len(cells) :]:
                panel.set_visible(False)
            panels[0].set_yticklabels(measures)
        for column in grid.T:
            [panel for panel in column if panel.get_visible()][-1].tick_params(labelbottom=True)
        keys = [
            mark("o", style.INK, 4, "share of importance on the truth"),
            mark("D", style.INK, 4, "share of the truth among as many top words or pixels", markerfacecolor="white"),
            Line2D([], [], **CHANCE, label="truth's share of words or pixels"),
        ]
        note = f"Further right is better. Dotted line: what equal importances give. {WHISKERS}"
        finish(figure, title, keys, note, 0.2 + sum(0.5 + 0.16 * ratio for ratio in ratios))
    return figure


def _panel_rows(points: pd.DataFrame) -> list[tuple[list[tuple[str, ...]], list[str]]]:
    """The cells of each row of panels, which has a single dataset, with its measures, the best first."""
    panel_rows = []
    for _, group in points.groupby("dataset"):
        measures = group.groupby("measure")["found"].mean().sort_values(ascending=False, na_position="last")
        cells = list(group[MANIPULATION_KEYS].drop_duplicates().itertuples(index=False, name=None))
        panel_rows += [(cells[i : i + COLUMNS], list(measures.index)) for i in range(0, len(cells), COLUMNS)]
    return panel_rows


def _plot_found(panel: Axes, points: pd.DataFrame, measures: list[str]) -> None:
    panel.axvline(points[REGION].mean(), **CHANCE, zorder=1)
    for point in points.to_dict("records"):
        y, colour = measures.index(point["measure"]), style.measure_colour(point["measure"])
        for value, ends, offset, marker, face in (
            (ATTRIBUTED, ("low", "high"), -0.17, "o", colour),
            ("found", ("found_low", "found_high"), 0.17, "D", "white"),
        ):
            panel.plot([point[end] for end in ends], [y + offset] * 2, color=colour, linewidth=0.9, zorder=2)
            dot = {**POINT, "color": colour, "marker": marker, "markerfacecolor": face}
            panel.plot(point[value], y + offset, markeredgewidth=0.9, clip_on=False, **dot)
    panel.set(xlim=(-0.03, 1.03), ylim=(len(measures) - 0.4, -0.6), xticks=(0, 0.5, 1))
    panel.set_yticks(range(len(measures)), [""] * len(measures))
    panel.tick_params(axis="y", length=0)


def average_rows(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Means of the rows with equal keys, such as those of several seeds, with the intervals of the attributed share
    (`low`, `high`) and of `found` (`found_low`, `found_high`)."""
    means = []
    for key, group in rows.groupby(list(keys), observed=True, sort=True, dropna=False):
        shares = group[ATTRIBUTED].to_numpy(float)
        within = (group["ci_low"].mean(), group["ci_high"].mean())
        low, high = mean_interval(shares) if len(shares) >= FEWEST else within
        found_low, found_high = mean_interval(group["found"].to_numpy(float))
        values = {name: group[name].mean() for name in (ATTRIBUTED, REGION, "found", "auc", "accuracy")}
        ends = {"low": low, "high": high, "found_low": found_low, "found_high": found_high}
        means.append(dict(zip(keys, key, strict=True)) | values | ends)
    return pd.DataFrame(means)


def kind_styles(kinds: Iterable[str]) -> dict[str, dict[str, Any]]:
    """A colour and a marker for each kind of manipulation."""
    # Ordered so that neighbouring colours differ.
    colours = [style.MUTED[i] for i in (6, 0, 4, 2, 8, 1, 5, 3, 7)]
    return {
        kind: {"color": colour, "marker": marker}
        for kind, colour, marker in zip(sorted(set(kinds)), cycle(colours), cycle(MARKERS), strict=False)
    }


def truth_rows(truth: pd.DataFrame) -> pd.DataFrame:
    """The defined rows about the truth, with strings in place of categories."""
    rows = truth[truth["truth"] & truth["status"].isin(DEFINED)].dropna(subset=[ATTRIBUTED])
    return rows.assign(**{name: rows[name].astype(str) for name in (*CELL, "measure", "manipulation", "kind", "class")})


def _measure_panels(rows: pd.DataFrame, row_height: float) -> tuple[Figure, dict[str, Axes], float]:
    """A figure, its panel for each measure of the rows, and the height of all panels in inches."""
    measures = style.ordered(rows["measure"], last=RANDOM)
    columns = min(len(measures), COLUMNS)
    count = ceil(len(measures) / columns)
    figure = panel_figure(style.ONE_COLUMN if columns == 1 else style.TWO_COLUMNS)
    grid = figure.subplots(count, columns, sharex=True, sharey=True, squeeze=False)
    panels = dict(zip(measures, hide_unused(grid, len(measures)), strict=True))
    for measure, panel in panels.items():
        panel.set_title(measure, loc="left", pad=4, color=style.measure_colour(measure))
    return figure, panels, count * row_height * (1.4 if columns == 1 else 1)


@figure(
    "attribution-by-region",
    reads=["ground_truth"],
    cells="ground_truth",
    per=["dataset"],
    only=["images"],
    page="truth",
    experiment="ground truth",
    order=170,
)
def draw_by_region(drawing: Drawing) -> Figure:
    """Share of importance on the region that determines the label (vertically) against the region’s share of the image
    (horizontally), one panel per measure (Zhou et al.’s Figure 5). A point for each model and class, full for the
    manipulated class and hollow for the other, with its 95 % interval over seeds or, for fewer than three seeds, over
    images; colours and markers are kinds of manipulation. Higher is better: near the top a measure finds the region, on
    the dotted diagonal it ignores it. Only models with an accuracy above 95 %.
    """
    return attribution_by_region(drawing.rows(GROUND_TRUTH), drawing.title)


@figure(
    "attribution-by-accuracy",
    reads=["trace", "ground_truth"],
    cells="ground_truth",
    per=["dataset"],
    only=["traced"],
    page="truth",
    experiment="ground truth",
    order=180,
)
def draw_by_accuracy(drawing: Drawing) -> Figure:
    """Share of importance on the region that determines the label (vertically) against the accuracy of the model
    (horizontally) during training, one panel per measure (Zhou et al.’s Figure 6). A line for each model and seed with
    a marker at each stored epoch, the last one large; dotted is the region’s share of the image or text. Higher is
    better, and the share should rise with the accuracy.
    """
    return attribution_by_accuracy(drawing.rows(TRACE), drawing.frame(GROUND_TRUTH), drawing.title)


@figure("truth-found", reads=["ground_truth"], page="truth", experiment="ground truth", order=250)
def draw_found(drawing: Drawing) -> Figure:
    """How much of the truth (the words or pixels that determine the label) each measure (rows) finds, by dataset,
    manipulation and model (panels), for models that use it. Circles: share of importance on the truth. Diamonds: share
    of the truth among as many top-ranked words or pixels or, where any word of it suffices, how often the top-ranked
    word belongs to it. Further right is better; the dotted line is the truth’s share of all words or pixels, which
    equal importances give. Whiskers are 95 % intervals over seeds and variants; for fewer than three, circles have
    intervals over texts or images.
    """
    return truth_found(drawing.frame(GROUND_TRUTH))
