"""Values by name, one colour per series: a picture of any few numbers with their intervals."""

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
        keys = [
            Line2D([], [], color=colour, marker=MARKERS[place % len(MARKERS)], markersize=4, linestyle="", label=label)
            for place, (label, colour) in enumerate(zip(map(str, series), colours, strict=True))
        ]
        finish(drawn, title, keys, note, TALL * max(len(names), 4) * max(1, len(series) / 3) + 0.2)
    return drawn
