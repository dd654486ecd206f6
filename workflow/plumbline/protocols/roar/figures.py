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
UNITS = {"relative": "words masked, %", "absolute": "number of words masked"}
TOPS = {"absolute": "most important words", "relative": "most important words, %"}
NOTHING = "No model was trained on masked words here."
LOWER = (
    "Below random: masking what the measure calls important costs more than masking at random, so that lower is more "
    "faithful."
)
LEAKAGE = (
    "Trained only on which words are masked: above the dotted line (chance), the masks alone give the class away and "
    "raise the curves above."
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
    drawn = set(zip(words["unit"], words["strategy"], strict=True))
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
        return style.sentence_figure(f"{title}: No text was explained here.")
    measures = style.ordered(rows["measure"], last=random)
    with style.theme():
        figure = panel_figure(style.ONE_COLUMN if len(units) == 1 else style.TWO_COLUMNS)
        panels = figure.subplots(1, len(units), sharey=True, squeeze=False)[0]
        for panel, unit in zip(panels, units, strict=True):
            curves = rows[rows["unit"] == unit]
            plot_measures(panel, curves, "top", "share", measures, random)
            panel.set(xlabel=TOPS[unit], xticks=sorted(curves["top"].unique()))
        panels[0].set(ylim=(0, 1.02), ylabel="share of all importance")
        note = f"Higher: sparser, few words have most of the importance. {seed_note(rows)}"
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
            "Informative features are removed first (truth) or last (worst), or in the order of a model's "
            "coefficients: of one fit for all removals (ROAR), or of a new fit after each (recursive)."
        )
        finish(figure, "Synthetic check: features of known use", keys, note, TALL + 0.25)
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
    return f"Means of {count} seeds, with 95 % intervals."


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
    """Scores of models retrained on masked texts, by the share or number of masked words: a line for each measure that
    ranks the words, a dashed one for masking at random, and a dotted one where everything is masked; bands are 95 %
    intervals over seeds (Recursive ROAR’s Figures 4 and 7 to 9). The further a line is below random, the more faithful
    the measure. If there is a second row, its models see only which words are masked: above its dotted line, chance,
    the masks give the class away.
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
    """The share of a text’s importance that its most important words have together, by their number (left) and as a
    percentage of the text (right); a line for each measure (Madsen et al.’s Figures 5 and 6). Where a line rises early,
    few words have most of the importance.
    """
    return sparsity_figure(drawing.rows(SPARSITY), drawing.title, drawing.facts["random"])


@figure("synthetic-roar", reads=["synthetic_roar"], page="masking", experiment="masking and retraining", order=140)
def draw_synthetic(drawing: Drawing) -> Figure:
    """Accuracy of a logistic regression by the number of removed features, of which few are informative (Madsen et
    al.’s Figure 3). Removal by importances that are recomputed after each step follows the truth, informative features
    first; by those of the first fit it lags behind; worst removes uninformative features first.
    """
    return synthetic_figure(drawing.frame(SYNTHETIC_ROAR))
