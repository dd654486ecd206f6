"""What masking words and training anew costs (Recursive ROAR, Figures 3 to 9).

Lines are means over seeds, and bands the 95 % intervals of these means; a single seed has none.
"""

from collections.abc import Sequence
from itertools import pairwise, product
from math import ceil
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.figures import style
from plumbline.figures.classes import head
from plumbline.figures.drawing import Drawing
from plumbline.protocols.attention.figures import mark
from plumbline.protocols.bootstrap import FEWEST, mean_interval
from plumbline.protocols.roar.schemas import FAITHFULNESS, ROAR, SPARSITY, SYNTHETIC_ROAR
from plumbline.registry import figure

# The columns of published values, which are shares as ours are.
PUBLISHED = ["dataset", "model", "measure", "value", "ci_low", "ci_high"]
CELL = ["dataset", "model"]

STRATEGIES = {"recursive": "Recursive ROAR", "roar": "ROAR"}
UNITS = {"relative": "words masked, %", "absolute": "number of words masked"}
TOPS = {"absolute": "most important words", "relative": "most important words, %"}
NOTHING = "No model was trained on masked words here."
LOWER = (
    "Below random: masking what the measure calls important costs more than masking at random, so that lower is more "
    "faithful."
)
LEAKAGE = (
    "Trained on nothing but which words are masked: above the dotted line, which is chance, the masks alone give the "
    "class away, and lift the curves above."
)
HIGHER = "Higher: more faithful; 0: no better than masking at random."
SHARE = "faithfulness\n(share of the area between random and nothing left)"

# Beside its colour each measure has a marker, for those who tell colours apart badly.
MARKERS = "os^vPXd"
FLOOR: dict[str, Any] = {"color": style.INK, "linewidth": 0.8, "linestyle": (0, (1, 2))}
# Inches that panels are high, the overview at most, and a lane of it; then lanes: between measures, between rows, and
# the least of a row.
TALL = 1.75
TALLEST = 8.0
LANE = 0.068
BETWEEN_MEASURES = 0.5
BETWEEN_ROWS = 2.4
LEAST = 4.5
KINDS = ("published", "recursive", "roar")

# Wide and pale lies under narrow and dark, so that both are seen where they are the same.
SYNTHETIC: dict[str, dict[str, Any]] = {
    "worst": {"label": "worst", "color": "#8C8C8C", "marker": "v"},
    "truth": {"label": "truth", "color": "#EBC975", "linewidth": 5, "solid_capstyle": "round"},
    "roar": {"label": "ROAR", "color": style.CLASSES[2], "marker": "s"},
    "recursive": {"label": "Recursive ROAR", "color": style.CLASSES[1], "marker": "o"},
}


def roar_curves(roar: pd.DataFrame, metric: str, title: str, random: str = "") -> Figure:
    """A metric against how much is masked, a line for each measure and a panel for each strategy and unit.

    `roar` has rows of the table of that name, of one dataset and model. Where models were trained on nothing but which
    words are masked, a second row of panels shows these. `random` is the study's name of masking at random.
    """
    rows = roar[(roar["metric"] == metric) & (roar["status"] == "ok")].dropna(subset=["value"])
    words, positions = (rows[rows["trained_on"] == seen] for seen in ("words", "positions"))
    there = set(zip(words["unit"], words["strategy"], strict=True))
    pairs = [pair for pair in product(UNITS, STRATEGIES) if pair in there]
    if not pairs:
        return style.sentence_figure(f"{title}: {NOTHING}")
    measures = _measures(rows, random)
    relative = words[words["unit"] == "relative"]
    # Everything is masked at the last relative level; with nothing masked the positions tell nothing.
    floors = [relative[relative["level"] == relative["level"].max()], positions[positions["level"] == 0]]
    kinds = [words] if positions.empty else [words, positions]
    with style.theme():
        figure = new_figure(style.ONE_COLUMN if len(pairs) == 1 else style.TWO_COLUMNS)
        grid = figure.subplots(len(kinds), len(pairs), sharex="col", sharey="row", squeeze=False)
        for panels, kind, floor in zip(grid, kinds, floors, strict=False):
            for panel, (unit, strategy) in zip(panels, pairs, strict=True):
                here = kind[(kind["unit"] == unit) & (kind["strategy"] == strategy)]
                _draw_measures(panel, here, "level", "value", measures, random)
                if len(floor):
                    panel.axhline(floor["value"].mean(), zorder=1.5, **FLOOR)
                panel.set_xlim(left=0)
            panels[0].set_ylabel(metric.replace("_", " "))
        for first, last, (unit, strategy) in zip(grid[0], grid[-1], pairs, strict=True):
            first.set_title(STRATEGIES[strategy], loc="left", pad=5)
            last.set_xlabel(UNITS[unit])
        if len(positions):
            grid[1, 0].set_title("\n".join(wrap(LEAKAGE, 52)), loc="left", pad=5, fontsize=7, color=style.FAINT)
        keys = _measure_keys(measures, random)
        dotted = ["everything masked"] * (len(floors[0]) > 0) + ["chance"] * (len(positions) > 0)
        if dotted:
            keys.append(Line2D([], [], **FLOOR, label=", ".join(dotted)))
        finish(figure, title, keys, f"{LOWER} {_seeds(words)}", TALL * len(kinds) + 0.4 * (len(kinds) - 1))
    return figure


def sparsity_figure(sparsity: pd.DataFrame, title: str, random: str = "") -> Figure:
    """How much of a text's importance its most important words have, by number and by percentage of words.

    `sparsity` has rows of the table of that name, of one dataset and model.
    """
    rows = sparsity.dropna(subset=["share"])
    units = [unit for unit in TOPS if unit in set(rows["unit"])]
    if not units:
        return style.sentence_figure(f"{title}: No text was explained here.")
    measures = _measures(rows, random)
    with style.theme():
        figure = new_figure(style.ONE_COLUMN if len(units) == 1 else style.TWO_COLUMNS)
        panels = figure.subplots(1, len(units), sharey=True, squeeze=False)[0]
        for panel, unit in zip(panels, units, strict=True):
            here = rows[rows["unit"] == unit]
            _draw_measures(panel, here, "top", "share", measures, random)
            panel.set(xlabel=TOPS[unit], xticks=sorted(here["top"].unique()))
        panels[0].set(ylim=(0, 1.02), ylabel="share of all importance")
        told = f"The higher the sparser: few words have most of the importance. {_seeds(rows)}"
        finish(figure, title, _measure_keys(measures, random), told, TALL)
    return figure


def bands(rows: pd.DataFrame, at: str, value: str) -> pd.DataFrame:
    """Mean over seeds at each place, and the ends of its interval, which are NaN for a single seed."""
    each = {place: seeds.to_numpy(float) for place, seeds in rows.groupby(at, observed=True)[value]}
    ends = [(seeds.mean(), *mean_interval(seeds)) for seeds in each.values()]
    return pd.DataFrame(ends, index=list(each), columns=["mean", "low", "high"])


def _measures(rows: pd.DataFrame, random: str) -> list[str]:
    """In the order in which figures show them, with random, which they are set against, last."""
    return sorted(style.ordered(rows["measure"]), key=lambda measure: measure == random)


def _draw_measures(panel: Axes, rows: pd.DataFrame, at: str, value: str, measures: Sequence[str], random: str) -> None:
    """A line with its band for each measure that is there."""
    for measure in measures:
        _line(panel, bands(rows[rows["measure"] == measure], at, value), **_look(measure, measures, random))
    panel.margins(x=0.02)


def _line(panel: Axes, line: pd.DataFrame, **look: Any) -> None:
    if line.empty:
        return
    panel.plot(line.index, line["mean"], **{"linewidth": 1.1, "markersize": 2.8, "zorder": 3, **look})
    if line["low"].notna().any():
        panel.fill_between(line.index, line["low"], line["high"], color=look["color"], alpha=0.2, linewidth=0, zorder=2)


def _look(measure: str, measures: Sequence[str], random: str) -> dict[str, Any]:
    """Random has no marker and is dashed."""
    look = {"color": style.measure_colour(measure), "label": measure}
    if measure == random:
        return look | {"linestyle": (0, (4, 2)), "linewidth": 1.3}
    return look | {"marker": MARKERS[measures.index(measure) % len(MARKERS)], "markeredgewidth": 0}


def _measure_keys(measures: Sequence[str], random: str) -> list[Line2D]:
    return [Line2D([], [], **{"linewidth": 1.1, "markersize": 4, **_look(name, measures, random)}) for name in measures]


def _seeds(rows: pd.DataFrame) -> str:
    count = rows["seed"].nunique()
    if count < FEWEST:
        return "One seed." if count == 1 else f"Means of {count} seeds, too few for intervals."
    return f"Means of {count} seeds, with 95 % intervals."


def new_figure(width: float) -> Figure:
    """A figure whose text is measured as it will be in an image; see `finish` for its height."""
    figure = style.new_figure(width, 1)
    figure.set_layout_engine("constrained", wspace=0.04)
    figure.set_dpi(style.DOTS_PER_INCH)
    return figure


def finish(figure: Figure, title: str, keys: Sequence[Line2D], told: str, height: float) -> None:
    """Title and legend above, a sentence below, and so many inches between."""
    head(figure, title, [], keys)
    width = figure.get_figwidth()
    lines = wrap(told, int(20 * width))
    figure.supxlabel("\n".join(lines), x=0.085 / width, ha="left", fontsize=6.5, color=style.FAINT)
    (legend,) = figure.legends
    figure.set_figheight(height + legend.get_window_extent().height / figure.dpi + 0.35 + 0.11 * len(lines))


def faithfulness_figure(faithfulness: pd.DataFrame, published: pd.DataFrame | None) -> Figure:
    """The faithfulness of every measure with its interval, by dataset and model: full for the recursive strategy,
    hollow for the other; absolute levels have a panel of their own.

    `faithfulness` has rows of the table of that name, of one metric per dataset; `published` has the columns
    `PUBLISHED`, and is about relative levels.
    """
    ours = faithfulness[faithfulness["status"] == "ok"].dropna(subset=["faithfulness"])
    if ours.empty:
        return style.sentence_figure(f"Faithfulness: {NOTHING}")
    told = pd.DataFrame(columns=PUBLISHED) if published is None else published.dropna(subset=["value"])
    told = told.rename(columns={"value": "faithfulness"}).assign(strategy="published", unit="relative")
    where = ["dataset", "model", "measure"]
    told = told[pd.MultiIndex.from_frame(told[where]).isin(pd.MultiIndex.from_frame(ours[where]))]
    rows = pd.concat([ours, told]) if len(told) else ours
    kinds = [kind for kind in KINDS if kind in set(rows["strategy"])]
    units = [unit for unit in UNITS if unit in set(rows["unit"])]
    cells = list(dict.fromkeys(ours[CELL].itertuples(index=False, name=None)))
    whole = Lanes(ours, cells, kinds)
    # What is too high for a page stands side by side.
    half = ceil(len(cells) / 2) if whole.height > TALLEST else len(cells)
    blocks = [Lanes(ours, cells[first : first + half], kinds) for first in range(0, len(cells), half)]
    with style.theme():
        figure = new_figure(style.ONE_COLUMN if len(blocks) * len(units) == 1 else style.TWO_COLUMNS)
        panels = figure.subplots(1, len(blocks) * len(units), squeeze=False)[0]
        for panel, (lanes, unit) in zip(panels, product(blocks, units), strict=True):
            here = rows[rows["unit"] == unit]
            for line in here.to_dict("records"):
                place = lanes.places.get((*(line[key] for key in where), line["strategy"]))
                if place is not None:
                    _point(panel, line, place)
            lanes.prepare(panel, unit == units[0])
            panel.set_xlim(*_ends(here))
            if len(units) > 1:
                panel.set_title("by percent of words" if unit == "relative" else "by number of words", loc="left")
        for panel in panels:
            label = SHARE if len(panels) < 3 else "faithfulness"
            panel.set_xlabel(label, fontsize=7, loc="right" if len(panels) == 1 else "center")
        keys = [mark("o", style.measure_colour(name), 4, name) for name in style.ordered(ours["measure"])]
        note = f"{HIGHER} {SHARE.capitalize()}.".replace("\n", " ") if len(panels) > 2 else HIGHER
        height = max(lanes.height for lanes in blocks) + 0.45
        finish(figure, "Faithfulness by masking and retraining", [*keys, *_kind_keys(kinds)], note, height)
    return figure


class Lanes:
    """Where the points of the overview lie, from top to bottom: a row for each of `cells`, which are pairs of dataset
    and model, and in it a lane for each kind of point of each measure."""

    def __init__(self, ours: pd.DataFrame, cells: Sequence[tuple[str, str]], kinds: Sequence[str]) -> None:
        self.places: dict[tuple[str, ...], float] = {}
        self.names = [f"{dataset}\n{model}" for dataset, model in cells]
        self.edges = [0.0]
        for dataset, model in cells:
            here = ours[(ours["dataset"] == dataset) & (ours["model"] == model)]
            measures = style.ordered(here["measure"])
            step = len(kinds) + BETWEEN_MEASURES
            need = len(measures) * step - BETWEEN_MEASURES
            room = max(need, LEAST) + BETWEEN_ROWS
            first = self.edges[-1] + (room - need + 1) / 2
            for (i, measure), (j, kind) in product(enumerate(measures), enumerate(kinds)):
                self.places[dataset, model, measure, kind] = first + i * step + j
            self.edges.append(self.edges[-1] + room)

    @property
    def height(self) -> float:
        """Of all rows, in inches."""
        return LANE * self.edges[-1]

    def prepare(self, panel: Axes, names: bool) -> None:
        """Rows set apart, with their names if asked for, and the line of what is no better than random."""
        middles = [(one + other) / 2 for one, other in pairwise(self.edges)]
        panel.set_yticks(middles, self.names if names else [""] * len(middles), parse_math=False)
        panel.set_ylim(self.edges[-1], 0)
        for edge in self.edges[1:-1]:
            panel.axhline(edge, color="#d3d7dc", linewidth=0.6, zorder=0.5)
        panel.axvline(0, color=style.INK, linewidth=0.8, zorder=1)
        panel.tick_params(axis="y", length=0)
        panel.grid(visible=False, axis="y")
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:.10g}".replace("-", "−"))


def _ends(rows: pd.DataFrame) -> tuple[float, float]:
    """Where an axis of these points and intervals begins and ends; a narrow one would make much of little."""
    values = rows[["faithfulness", "ci_low", "ci_high"]].to_numpy(float)
    return min(-0.1, np.nanmin(values) - 0.03), max(0.3, np.nanmax(values) + 0.03)


def _point(panel: Axes, line: dict[Any, Any], at: float) -> None:
    colour = style.measure_colour(line["measure"])
    look = _kind_look(line["strategy"], colour)
    bar = look.pop("bar")
    panel.plot([line["ci_low"], line["ci_high"]], [at] * 2, color=bar, linewidth=1, zorder=2, solid_capstyle="butt")
    panel.plot(line["faithfulness"], at, linestyle="", zorder=3, clip_on=False, **look)


def _kind_look(kind: str, colour: str) -> dict[str, Any]:
    """How a kind of point is drawn, with the colour of its interval as `bar`."""
    if kind == "published":
        pale = pale_of(colour)
        return {"marker": "D", "markersize": 3.4, "color": pale, "markeredgewidth": 0, "bar": pale}
    full = kind == "recursive"
    return {
        "marker": "o",
        "markersize": 3.6,
        "color": colour,
        "markerfacecolor": colour if full else "white",
        "markeredgewidth": 0.9,
        "bar": colour,
    }


def pale_of(colour: str) -> str:
    """The colour mixed with as much white, for what is not ours."""
    red, green, blue = to_rgb(colour)
    return to_hex((0.5 + red / 2, 0.5 + green / 2, 0.5 + blue / 2))


def _kind_keys(kinds: Sequence[str]) -> list[Line2D]:
    names = {**STRATEGIES, "published": "published (recursive)"}
    keys = []
    for kind in kinds if len(kinds) > 1 else []:
        look = _kind_look(kind, style.INK)
        look.pop("bar")
        keys.append(Line2D([], [], linestyle="", label=names[kind], **look))
    return keys


def synthetic_figure(synthetic: pd.DataFrame) -> Figure:
    """Accuracy after so many features were removed, in the order that each curve is named by (Figure 3)."""
    curves = {name: look for name, look in SYNTHETIC.items() if name in set(synthetic["curve"])}
    with style.theme():
        figure = new_figure(style.ONE_COLUMN)
        panel = figure.subplots()
        for name, look in curves.items():
            _line(panel, bands(synthetic[synthetic["curve"] == name], "removed", "accuracy"), **look)
        panel.axhline(0.5, zorder=1.5, **FLOOR)
        most = int(synthetic["removed"].max())
        panel.set(xlabel="features removed", ylabel="accuracy", ylim=(0.45, 1.02), xticks=range(0, most + 1, 2))
        panel.margins(x=0.02)
        keys = [Line2D([], [], **{"linewidth": 1.1, "markersize": 4, **curves[name]}) for name in _listed(curves)]
        keys.append(Line2D([], [], **FLOOR, label="chance"))
        told = (
            "Useful features are removed first (truth) or last (worst), or as a fit ranks them: one fit for all "
            "removals (ROAR), or a new one after each (recursive)."
        )
        finish(figure, "Synthetic check: features of known use", keys, told, TALL + 0.25)
    return figure


def _listed(curves: dict[str, Any]) -> list[str]:
    """In the order of the legend: the truth first."""
    return sorted(curves, key=["truth", "recursive", "roar", "worst"].index)


@figure(
    "roar-curves",
    reads=["roar"],
    params=["headlines", "random"],
    cells="curves",
    per=["dataset", "model"],
    page="masking",
    experiment="masking and retraining",
    order=110,
    caption=(
        "Scores of models trained anew after words were masked, by how much is masked: a line for each "
        "measure that says which words go first, a dashed one for masking at random, and a dotted one where "
        "everything is masked; bands are 95 % intervals over seeds (Recursive ROAR’s Figures 4 and 7 to 9). "
        "The further a line is below random, the more faithful the measure. Where there is a second row, its "
        "models see only which words are masked: above its dotted line, chance, the masks give the class "
        "away."
    ),
)
def draw_curves(drawing: Drawing) -> Figure:
    """Scores of retrained models by how much is masked."""
    headline, random = drawing.facts["headlines"][drawing.dataset], drawing.facts["random"]
    return roar_curves(drawing.rows(ROAR), headline, drawing.title, random)


@figure(
    "sparsity",
    reads=["sparsity"],
    params=["random"],
    cells="curves",
    per=["dataset", "model"],
    page="masking",
    experiment="masking and retraining",
    order=120,
    caption=(
        "The share of a text’s importance that its most important words have together, by their number (left)"
        " and as a percentage of the text (right); a line for each measure (Madsen et al.’s Figures 5 and 6)."
        " Where a line rises early, few words have most of the importance."
    ),
)
def draw_sparsity(drawing: Drawing) -> Figure:
    """How few words have most of the importance."""
    return sparsity_figure(drawing.rows(SPARSITY), drawing.title, drawing.facts["random"])


@figure(
    "faithfulness",
    reads=["faithfulness", "reproduction"],
    params=["order"],
    page="masking",
    experiment="masking and retraining",
    order=130,
    caption=(
        "Faithfulness of every measure with its 95 % interval, by dataset and model: full circles for the "
        "recursive strategy, hollow ones for the other, pale diamonds as published. Right of 0 masking by the"
        " measure costs more than masking at random; at 0 it costs as much."
    ),
)
def draw_faithfulness(drawing: Drawing) -> Figure:
    """All measures at a glance, beside published values, in the order of the study."""
    order = {name: place for place, name in enumerate(drawing.facts["order"])}
    ours = drawing.frame(FAITHFULNESS)
    ours = ours.sort_values(["dataset", "model"], key=lambda column: column.astype(str).map(order), kind="stable")
    # The published values that ours are judged by; they say nothing about what was made otherwise.
    told = drawing.any_frame("reproduction")
    told = told[(told["study"] == "Recursive ROAR") & (told["metric"] == "faithfulness") & told["within"].notna()]
    columns = {"measure_a": "measure", "published": "value", "published_low": "ci_low", "published_high": "ci_high"}
    return faithfulness_figure(ours, told.rename(columns=columns).reindex(columns=PUBLISHED))


@figure(
    "synthetic-roar",
    reads=["synthetic_roar"],
    page="masking",
    experiment="masking and retraining",
    order=140,
    caption=(
        "Accuracy of a regression after so many features were removed, of which few are of use (Madsen et "
        "al.’s Figure 3). Removal by importances that are computed anew each time follows the truth, useful "
        "features first; by those of the first fit it lags behind; worst is useless features first."
    ),
)
def draw_synthetic(drawing: Drawing) -> Figure:
    """The synthetic check."""
    return synthetic_figure(drawing.frame(SYNTHETIC_ROAR))
