"""Values by name or along an axis, one colour per series: pictures of any few numbers with their intervals."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.figures import style
from plumbline.figures.layout import MARKERS, finish, panel_figure

# The height of a name and the distance of two series, in inches and in names.
TALL, APART = 0.28, 0.7
SIZE: dict[str, Any] = {"markersize": 4.5}
# The height of a panel of lines, in inches.
PANEL = 2.0
# The least ratio of two numbers whose labels do not overlap on the axis of lines.
APART_BY = 1.8


def values(rows: pd.DataFrame, title: str, note: str = "") -> Figure:
    """A mark per name (vertically) and series (colour) with its interval, or the mean of rows, which are small marks.

    rows: `name`, `series` and `value`, and `ci_low` and `ci_high` where they are known.
    """
    rows = rows.dropna(subset="value")
    if rows.empty:
        return style.sentence_figure(f"{title}: no values")
    names, series = list(rows["name"].unique()), list(rows["series"].unique())
    colours = sns.color_palette("colorblind", len(series))
    with style.theme():
        drawn = panel_figure(style.TWO_COLUMNS * 0.8)
        panel = drawn.subplots()
        for place, one in enumerate(series):
            some = rows[rows["series"] == one].groupby("name", sort=False)
            value = some["value"].mean()
            shift = (place - (len(series) - 1) / 2) * APART / len(series)
            heights = {name: names.index(name) + shift for name in value.index}
            shown = {"linestyle": "", "marker": MARKERS[place % len(MARKERS)], "color": colours[place]}
            if "ci_low" in rows and rows["ci_low"].notna().any():
                low, high = value - some["ci_low"].mean(), some["ci_high"].mean() - value
                ends = [low.fillna(0), high.fillna(0)]
                panel.errorbar(value, list(heights.values()), xerr=ends, elinewidth=0.9, capsize=1.5, **shown | SIZE)
                continue
            own = rows[rows["series"] == one]
            panel.plot(own["value"], own["name"].map(heights), markersize=2, alpha=0.35, **shown)
            panel.plot(value, list(heights.values()), **shown | SIZE)
        panel.axvline(0, color=style.FAINT, linewidth=0.7, zorder=0)
        panel.set_yticks(range(len(names)), names)
        panel.set_ylim(len(names) - 0.5, -0.5)
        finish(drawn, title, _keys(series), note, TALL * max(len(names), 4) * max(1, len(series) / 3) + 0.2)
    return drawn


def lines(rows: pd.DataFrame, title: str, note: str = "") -> Figure:
    """A panel per series with a line per name along a positive number, on a logarithmic axis, with intervals.

    rows: `series`, `name`, `along`, `value`, `ci_low` and `ci_high`; `axis`, if there is one, is the title of the axis.
    """
    rows = rows.dropna(subset="value")
    if rows.empty:
        return style.sentence_figure(f"{title}: no values")
    series, names = list(rows["series"].unique()), list(rows["name"].unique())
    ticks: list[float] = []
    for tick in sorted(rows["along"].unique()):
        if not ticks or tick >= APART_BY * ticks[-1]:
            ticks.append(tick)
    colours = sns.color_palette("colorblind", len(names))
    with style.theme():
        drawn = panel_figure(style.TWO_COLUMNS)
        panels = drawn.subplots(1, len(series), sharex=True, sharey=True, squeeze=False)[0]
        for panel, one in zip(panels, series, strict=True):
            for place, name in enumerate(names):
                some = rows[(rows["series"] == one) & (rows["name"] == name)].sort_values("along")
                # Marks of one place stand next to each other.
                along = some["along"] * 1.06 ** (place - (len(names) - 1) / 2)
                # An interval may end at the value but for rounding.
                ends = [(some["value"] - some["ci_low"]).clip(0), (some["ci_high"] - some["value"]).clip(0)]
                look = {"marker": MARKERS[place % len(MARKERS)], "color": colours[place], "linewidth": 1.1}
                panel.errorbar(along, some["value"], yerr=ends, elinewidth=0.8, capsize=1.5, **look | SIZE)
            panel.axhline(0, color=style.FAINT, linewidth=0.7, zorder=0)
            panel.set_xscale("log")
            panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            panel.minorticks_off()
            panel.set_title(str(one), fontsize=8)
        if "axis" in rows:
            panels[len(panels) // 2].set_xlabel(str(rows["axis"].iloc[0]), fontsize=7)
        finish(drawn, title, _keys(names), note, PANEL)
    return drawn


def _keys(labels: Sequence[Any]) -> list[Line2D]:
    """Keys with a colour and a marker each."""
    return [
        Line2D([], [], color=colour, marker=MARKERS[place % len(MARKERS)], markersize=4, linestyle="", label=label)
        for place, (label, colour) in enumerate(
            zip(map(str, labels), sns.color_palette("colorblind", len(labels)), strict=True)
        )
    ]
