"""Curves of masking and retraining, sparsity and the synthetic check (Recursive ROAR, Figures 3 to 9).

Lines are means over seeds, bands the 95 % intervals of these means; a single seed has no band.
"""

from collections.abc import Sequence
from itertools import product
from textwrap import wrap
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.figures import style
from plumbline.figures.drawing import Drawing
from plumbline.figures.layout import MARKERS, finish, panel_figure
from plumbline.protocols.bootstrap import FEWEST, mean_interval
from plumbline.protocols.roar.schemas import ROAR, SPARSITY, SYNTHETIC_ROAR
from plumbline.registry import figure

STRATEGIES = {"recursive": "Recursive ROAR", "roar": "ROAR"}
UNITS = {"relative": "masked words, %", "absolute": "number of masked words"}
TOPS = {"absolute": "number of most important words", "relative": "most important words, %"}
NOTHING = "no model was retrained on masked words."
LOWER = (
    "Lower is more faithful: below random, masking the words that the measure ranks first lowers the score more than "
    "masking at random."
)
LEAKAGE = (
    "Models that see only which words are masked: above the dotted line (chance), the masks alone reveal the class, "
    "and the curves of the upper row are too high."
)

FLOOR: dict[str, Any] = {"color": style.INK, "linewidth": 0.8, "linestyle": (0, (1, 2))}
# The height of a row of panels in inches.
TALL = 1.75

# The wide pale line lies under the narrow dark ones, so that both are visible where they coincide.
SYNTHETIC: dict[str, dict[str, Any]] = {
    "worst": {"label": "worst", "color": "#8C8C8C", "marker": "v"},
    "truth": {"label": "truth", "color": "#EBC975", "linewidth": 5, "solid_capstyle": "round"},
    "roar": {"label": "ROAR", "color": style.CLASSES[2], "marker": "s"},
    "recursive": {"label": "Recursive ROAR", "color": style.CLASSES[1], "marker": "o"},
}


def roar_curves(roar: pd.DataFrame, metric: str, title: str, random: str = "") -> Figure:
    """A metric by the masked share of words: a line for each measure, a panel for each strategy and unit.

    `roar` has rows of the table of that name for one dataset and model. If some models were trained only on which
    words are masked, a second row of panels shows these. `random` is the study's name of the random measure.
    """
    rows = roar[(roar["metric"] == metric) & (roar["status"] == "ok")].dropna(subset=["value"])
    words, positions = (rows[rows["trained_on"] == inputs] for inputs in ("words", "positions"))
    # With absolute levels only, the one relative level is that of everything masked, which is no curve.
    curves = words[words.groupby(["unit", "strategy"], observed=True)["level"].transform("nunique") > 1]
    drawn = set(zip(curves["unit"], curves["strategy"], strict=True))
    pairs = [pair for pair in product(UNITS, STRATEGIES) if pair in drawn]
    if not pairs:
        return style.sentence_figure(f"{title}: {NOTHING}")
    measures = style.ordered(rows["measure"], last=random)
    relative = words[words["unit"] == "relative"]
    # Everything is masked at the last relative level; at level 0 the positions carry no information.
    floors = [relative[relative["level"] == relative["level"].max()], positions[positions["level"] == 0]]
    kinds = [words] if positions.empty else [words, positions]
    with style.theme():
        figure = panel_figure(style.ONE_COLUMN if len(pairs) == 1 else style.TWO_COLUMNS)
        grid = figure.subplots(len(kinds), len(pairs), sharex="col", sharey="row", squeeze=False)
        for panels, kind, floor in zip(grid, kinds, floors, strict=False):
            for panel, (unit, strategy) in zip(panels, pairs, strict=True):
                curves = kind[(kind["unit"] == unit) & (kind["strategy"] == strategy)]
                plot_measures(panel, curves, "level", "value", measures, random)
                if len(floor):
                    panel.axhline(floor["value"].mean(), zorder=1.5, **FLOOR)
                panel.set_xlim(left=0)
            panels[0].set_ylabel(metric.replace("_", " "))
        for first, last, (unit, strategy) in zip(grid[0], grid[-1], pairs, strict=True):
            first.set_title(STRATEGIES[strategy], loc="left", pad=5)
            last.set_xlabel(UNITS[unit])
        if len(positions):
            grid[1, 0].set_title("\n".join(wrap(LEAKAGE, 52)), loc="left", pad=5, fontsize=7, color=style.FAINT)
        keys = measure_keys(measures, random)
        dotted = ["everything masked"] * (len(floors[0]) > 0) + ["chance"] * (len(positions) > 0)
        if dotted:
            keys.append(Line2D([], [], **FLOOR, label=", ".join(dotted)))
        finish(figure, title, keys, f"{LOWER} {seed_note(words)}", TALL * len(kinds) + 0.4 * (len(kinds) - 1))
    return figure


def sparsity_figure(sparsity: pd.DataFrame, title: str, random: str = "") -> Figure:
    """The share of a text's importance held by its most important words, by their number and by their percentage.

    `sparsity` has rows of the table of that name for one dataset and model.
    """
    rows = sparsity.dropna(subset=["share"])
    units = [unit for unit in TOPS if unit in set(rows["unit"])]
    if not units:
        return style.sentence_figure(f"{title}: no text was explained.")
    measures = style.ordered(rows["measure"], last=random)
    with style.theme():
        figure = panel_figure(style.ONE_COLUMN if len(units) == 1 else style.TWO_COLUMNS)
        panels = figure.subplots(1, len(units), sharey=True, squeeze=False)[0]
        for panel, unit in zip(panels, units, strict=True):
            curves = rows[rows["unit"] == unit]
            plot_measures(panel, curves, "top", "share", measures, random)
            panel.set(xlabel=TOPS[unit], xticks=sorted(curves["top"].unique()))
        panels[0].set(ylim=(0, 1.02), ylabel="share of the importance")
        note = f"Higher is sparser: few words have most of the importance. {seed_note(rows)}"
        finish(figure, title, measure_keys(measures, random), note, TALL)
    return figure


def synthetic_figure(synthetic: pd.DataFrame) -> Figure:
    """Accuracy by the number of removed features, a line for each order of removal (Figure 3)."""
    curves = {name: line for name, line in SYNTHETIC.items() if name in set(synthetic["curve"])}
    with style.theme():
        figure = panel_figure(style.ONE_COLUMN)
        panel = figure.subplots()
        for name, line in curves.items():
            _plot_band(panel, bands(synthetic[synthetic["curve"] == name], "removed", "accuracy"), **line)
        panel.axhline(0.5, zorder=1.5, **FLOOR)
        most = int(synthetic["removed"].max())
        panel.set(xlabel="features removed", ylabel="accuracy", ylim=(0.45, 1.02), xticks=range(0, most + 1, 2))
        panel.margins(x=0.02)
        legend = [curves[name] for name in ("truth", "recursive", "roar", "worst") if name in curves]
        keys = [*map(_key, legend), Line2D([], [], **FLOOR, label="chance")]
        note = (
            "Informative features are removed first (truth) or last (worst), or features in the order of a model's "
            "coefficients: of a single fit (ROAR), or of a new fit after each removal (Recursive ROAR)."
        )
        finish(figure, "Synthetic check: informative features are known", keys, note, TALL + 0.25)
    return figure


def bands(rows: pd.DataFrame, x: str, value: str) -> pd.DataFrame:
    """Mean over seeds at each x, and the ends of its interval, which are NaN for a single seed."""
    groups = {at: seeds.to_numpy(float) for at, seeds in rows.groupby(x, observed=True)[value]}
    ends = [(seeds.mean(), *mean_interval(seeds)) for seeds in groups.values()]
    return pd.DataFrame(ends, index=list(groups), columns=["mean", "low", "high"])


def plot_measures(panel: Axes, rows: pd.DataFrame, x: str, value: str, measures: Sequence[str], random: str) -> None:
    """A line with its band for each measure that has rows."""
    for measure in measures:
        line = _measure_style(measure, measures, random)
        _plot_band(panel, bands(rows[rows["measure"] == measure], x, value), **line)
    panel.margins(x=0.02)


def _plot_band(panel: Axes, band: pd.DataFrame, **line: Any) -> None:
    if band.empty:
        return
    panel.plot(band.index, band["mean"], **{"linewidth": 1.1, "markersize": 2.8, "zorder": 3, **line})
    if band["low"].notna().any():
        panel.fill_between(band.index, band["low"], band["high"], color=line["color"], alpha=0.2, linewidth=0, zorder=2)


def _measure_style(measure: str, measures: Sequence[str], random: str) -> dict[str, Any]:
    """Colour and marker of a measure's line; the random baseline is dashed and has no marker."""
    line = {"color": style.measure_colour(measure), "label": measure}
    if measure == random:
        return line | {"linestyle": (0, (4, 2)), "linewidth": 1.3}
    return line | {"marker": MARKERS[measures.index(measure) % len(MARKERS)], "markeredgewidth": 0}


def measure_keys(measures: Sequence[str], random: str) -> list[Line2D]:
    """Legend of `plot_measures`."""
    return [_key(_measure_style(name, measures, random)) for name in measures]


def _key(line: dict[str, Any]) -> Line2D:
    """A line in a legend."""
    return Line2D([], [], **{"linewidth": 1.1, "markersize": 4, **line})


def seed_note(rows: pd.DataFrame) -> str:
    """The number of seeds, and whether there are intervals."""
    count = rows["seed"].nunique()
    if count < FEWEST:
        return "One seed." if count == 1 else f"Means of {count} seeds, too few for intervals."
    return f"Lines: means of {count} seeds; bands: 95 % intervals."


@figure(
    "roar-curves",
    reads=["roar"],
    params=["headlines", "random"],
    cells="curves",
    per=["dataset", "model"],
    page="masking",
    experiment="masking and retraining",
    order=110,
)
def draw_curves(drawing: Drawing) -> Figure:
    """Score of models retrained on masked texts (vertically) by the percentage or number of masked words
    (horizontally): a line for each measure that ranks the words, dashed for masking at random and dotted for everything
    masked (Recursive ROAR’s Figures 4 and 7 to 9). Lines are means over seeds, bands 95 % intervals over seeds. The
    further a line is below random, the more faithful the measure. The models of a second row, if there is one, see only
    which words are masked: above its dotted line (chance), the masks alone reveal the class.
    """
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
)
def draw_sparsity(drawing: Drawing) -> Figure:
    """Share of a text’s total importance that its most important words have together (vertically), by their number
    (left) and by their percentage of the text (right); a line for each measure (Madsen et al.’s Figures 5 and 6). Lines
    are means over texts and seeds, bands 95 % intervals over seeds. Higher is sparser, not better: few words have most
    of the importance.
    """
    return sparsity_figure(drawing.rows(SPARSITY), drawing.title, drawing.facts["random"])


@figure("synthetic-roar", reads=["synthetic_roar"], page="masking", experiment="masking and retraining", order=140)
def draw_synthetic(drawing: Drawing) -> Figure:
    """Accuracy of a logistic regression (vertically) by the number of removed features (horizontally), few of which are
    informative (Madsen et al.’s Figure 3). Truth removes the informative features first, worst removes them last, ROAR
    removes features by the coefficients of the first fit, and Recursive ROAR by those of a new fit after each removal.
    The nearer a line is to truth, the better; dotted is chance. Lines are means over seeds, bands 95 % intervals over
    seeds.
    """
    return synthetic_figure(drawing.frame(SYNTHETIC_ROAR))
