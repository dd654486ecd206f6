"""The importance of each group of words, in all texts and in single ones (Zhou et al. 2022, Table 1, Figures 10 to
13)."""

from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from plumbline.figures import style
from plumbline.figures.drawing import Drawing
from plumbline.figures.layout import finish, hide_unused, panel_figure
from plumbline.protocols.ground_truth.figures import ATTRIBUTED, CHANCE, NO_MODEL, RANDOM, REGION
from plumbline.protocols.ground_truth.schemas import GROUND_TRUTH
from plumbline.registry import figure
from plumbline.tables.chance import DEFINED

OTHER = "other"
# Colours of the truth, then of the other groups of words.
COLOURS = ["#BB5566", "#004488", "#DDAA33", "#228833"]
PLAIN = "#c3c9d1"
# The number of words of a text that are shown at most, and the height of a bar in inches.
MOST_WORDS = 60
BAR = 0.13
# With more panels of bars than this, a measure is a row of shaded words.
MOST_PANELS = 24
SHADES = "Blues"


class ShownText(NamedTuple):
    """A text: its words, the group of each word (empty for none) and each measure's importances."""

    name: str
    words: Sequence[str]
    groups: Sequence[str]
    scores: Mapping[str, np.ndarray]


def attention_by_group(truth: pd.DataFrame, title: str) -> Figure:
    """The share of importance on each group of words, with its share of words: a row of panels for each variant, a
    column for each group, and a bar for each measure, with the standard deviation over seeds as whisker.

    truth: rows of the table `ground_truth` about one dataset and model.
    """
    rows = truth[(truth["class"] == "all") & truth["status"].isin(DEFINED)].dropna(subset=[ATTRIBUTED])
    if rows.empty:
        return style.sentence_figure(f"{title}: {NO_MODEL}")
    rows = rows.assign(**{name: rows[name].astype(str) for name in ("variant", "measure", "group")})
    variants, measures = list(dict.fromkeys(rows["variant"])), style.ordered(rows["measure"], last=RANDOM)
    groups_of = {variant: _ordered_groups(rows[rows["variant"] == variant]) for variant in variants}
    columns = max(map(len, groups_of.values()))
    with style.theme():
        figure = panel_figure(max(style.TWO_COLUMNS if columns > 1 else style.ONE_COLUMN, 1 + 1.6 * columns))
        grid = figure.subplots(len(variants), columns, sharey=True, squeeze=False)
        for panels, (variant, groups) in zip(grid, groups_of.items(), strict=True):
            for panel, group in zip(hide_unused(panels, len(groups)), groups, strict=True):
                _plot_bars(panel, rows[(rows["variant"] == variant) & (rows["group"] == group)], measures)
                panel.set_title("\n".join(wrap(group, 26)), loc="left", pad=4)
                panel.set_xlim(left=0)
            panels[0].set_ylabel(variant, fontsize=8, parse_math=False)
            panels[0].set_yticks(range(len(measures)), measures)
            panels[0].tick_params(axis="y", length=0)
        seeds = rows["seed"].nunique()
        keys = [Line2D([], [], **CHANCE, label="group's share of all words, which equal importances give")]
        spread = f"whiskers are ± one standard deviation over {seeds} seeds" if seeds > 1 else "one seed"
        note = f"Share of importance on each group of words, mean over texts; {spread}. Each panel has its own scale."
        finish(figure, title, keys, note, len(variants) * (BAR * len(measures) + 0.62))
    return figure


def word_attention(texts: Sequence[ShownText], names: Sequence[str], title: str) -> Figure:
    """Each word's share of the importance in single texts, with the words below, coloured by their group: a panel with
    bars for each text and measure or, if these are many, a panel for each text with a row of shaded words for each
    measure. `names` are the groups, in the order of the legend."""
    colours = {"": PLAIN, **dict(zip(names, cycle(COLOURS), strict=False))}
    measures = [style.ordered(text.scores, last=RANDOM) for text in texts]
    count = sum(map(len, measures))
    if not count:
        return style.sentence_figure(f"{title}: no text is shown.")
    shaded = count > MOST_PANELS
    with style.theme():
        figure = panel_figure(style.TWO_COLUMNS)
        panels = iter(figure.subplots(len(texts) if shaded else count, 1, squeeze=False)[:, 0])
        for text, own in zip(texts, measures, strict=True):
            first = next(panels)
            cut = f" (the first {MOST_WORDS} of {len(text.words)} words)" * (len(text.words) > MOST_WORDS)
            first.set_title(text.name + cut, loc="left", pad=4, parse_math=False)
            if shaded:
                _shade_words(first, text, own)
                _label_words(first, text, colours)
                continue
            for panel, measure in zip([first, *islice(panels, len(own) - 1)], own, strict=True):
                _plot_words(panel, text, measure, colours)
                _label_words(panel, text, colours, labelled=measure == own[-1])
        keys: list[Any] = [Patch(color=colours[name], label=name) for name in names]
        keys.append(Patch(color=PLAIN, label="other words"))
        share = "each word's share of the text's total importance, by absolute value"
        note = f"Shades: {share}, up to the largest of a row. Words: their group." if shaded else f"Bars: {share}."
        finish(figure, title, keys, note, (BAR if shaded else 0.5) * count + 0.75 * len(texts))
    return figure


def _ordered_groups(rows: pd.DataFrame) -> list[str]:
    """The groups of a variant: the truth first, the words in no group last."""
    truth = rows.groupby("group")["truth"].any()
    return sorted(dict.fromkeys(rows["group"]), key=lambda group: (group == OTHER, not truth[group]))


def _plot_bars(panel: Axes, rows: pd.DataFrame, measures: list[str]) -> None:
    bars: dict[str, Any] = {"ecolor": style.INK, "error_kw": {"elinewidth": 0.8}, "height": 0.72, "zorder": 2}
    for y, measure in enumerate(measures):
        shares = rows.loc[rows["measure"] == measure, ATTRIBUTED]
        spread = shares.std(ddof=0) if len(shares) > 1 else None
        panel.barh(y, shares.mean(), xerr=spread, color=style.measure_colour(measure), **bars)
    panel.axvline(rows[REGION].mean(), **{**CHANCE, "color": style.INK, "linewidth": 1}, zorder=3)
    panel.set_ylim(len(measures) - 0.4, -0.6)
    panel.grid(visible=False, axis="y")


def _shares(text: ShownText, measure: str) -> np.ndarray:
    """The words' shares of the total importance, of those that are shown."""
    weights = np.abs(text.scores[measure].astype(float))
    shares = weights / weights.sum() if weights.sum() else weights
    return np.asarray(shares[:MOST_WORDS])


def _plot_words(panel: Axes, text: ShownText, measure: str, colours: Mapping[str, str]) -> None:
    """A bar for each word."""
    shares = _shares(text, measure)
    panel.bar(range(len(shares)), shares, color=[colours[group] for group in text.groups[:MOST_WORDS]], width=0.8)
    panel.set_ylabel("\n".join(wrap(measure, 12)), rotation=0, ha="right", va="center", fontsize=6.5)
    panel.yaxis.label.set_color(style.measure_colour(measure))
    panel.locator_params(axis="y", nbins=2)
    panel.tick_params(axis="y", labelsize=6)


def _shade_words(panel: Axes, text: ShownText, measures: Sequence[str]) -> None:
    """A row of shaded words for each measure; the largest share of each is the darkest."""
    rows = [_shares(text, measure) for measure in measures]
    shades = np.stack([row / row.max() if row.max() else row for row in rows])
    panel.imshow(shades, cmap=SHADES, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    panel.set_yticks(range(len(measures)), measures, fontsize=6)
    panel.tick_params(axis="y", length=0)
    panel.set_yticks(np.arange(len(measures) + 1) - 0.5, minor=True)
    panel.grid(visible=False, axis="y", which="major")
    panel.grid(visible=True, axis="y", which="minor", color="white", linewidth=1)
    panel.tick_params(which="minor", length=0)


def _label_words(panel: Axes, text: ShownText, colours: Mapping[str, str], labelled: bool = True) -> None:
    """The words below a panel, in the colours of their groups."""
    words = list(text.words[:MOST_WORDS])
    panel.set(xlim=(-0.6, max(len(words), 20) - 0.4))
    panel.grid(visible=False, axis="x")
    panel.set_xticks(range(len(words)), words if labelled else [""] * len(words), rotation=90, fontsize=6)
    panel.tick_params(axis="x", length=0, pad=1)
    for label, group in zip(panel.get_xticklabels(), text.groups[:MOST_WORDS], strict=True):
        label.set_parse_math(False)
        if group:
            label.set(color=colours[group], fontweight="bold")


@figure(
    "attribution-by-group",
    reads=["ground_truth"],
    cells="ground_truth",
    per=["dataset", "model"],
    only=["texts"],
    page="truth",
    experiment="ground truth",
    order=210,
)
def draw_by_group(drawing: Drawing) -> Figure:
    """Share of importance on each group of words (columns) by variant (rows) and measure (bars): mean over texts, ±
    standard deviation over seeds (Zhou et al.’s Table 1, for every measure). The first column is the truth, the words
    that determine the label: there higher is better. The dotted line is the group’s share of all words, which equal
    importances give. Each panel has its own scale.
    """
    return attention_by_group(drawing.rows(GROUND_TRUTH), drawing.title)
