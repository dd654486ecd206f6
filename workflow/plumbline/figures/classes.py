"""Figures by predicted class: the rows of each class with its name and colour, and the title with the legend."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from plumbline.figures import style
from plumbline.figures.conventions import MOST_CLASSES
from plumbline.figures.intervals import interval


class Group(NamedTuple):
    """The rows of a predicted class, with its name and colour."""

    name: str
    colour: str
    rows: pd.DataFrame


def groups_of(frame: pd.DataFrame, classes: list[str]) -> list[Group]:
    """The rows of each predicted class; with more than three classes all rows together, as in the study."""
    labels = sorted(frame["predicted_class"].unique())
    if len(labels) > MOST_CLASSES:
        return [Group("all classes", style.BAR, frame)]
    # With more classes than colours, the predicted ones take the colours in turn.
    few = len(classes) <= len(style.CLASSES)
    return [
        Group(
            classes[label] if label < len(classes) else f"class {label}",
            style.class_colour(label if few else i),
            frame[frame["predicted_class"] == label],
        )
        for i, label in enumerate(labels)
    ]


def add_legend(figure: Figure, title: str, groups: Sequence[Group], keys: Sequence[Line2D]) -> None:
    """Add a title and a legend of as many columns as fit the width; names of classes may be long."""
    patches = [Patch(color=group.colour, alpha=0.6, label=group.name) for group in groups]
    handles: list[Patch | Line2D] = [*patches, *keys]
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(
            handles=handles, loc="outside upper left", ncols=columns, title=title, alignment="left", title_fontsize=9
        )
        if columns == 1 or legend.get_window_extent().width < 0.97 * figure.bbox.width:
            break
        legend.remove()


def mark(marker: str, colour: str, size: float, label: str, **look: Any) -> Line2D:
    """A marker in a legend."""
    return Line2D([], [], color=colour, marker=marker, markersize=size, linestyle="", label=label, **look)


def mean_keys(seeds: int) -> list[Line2D]:
    """Legend of `mark_means`."""
    keys = [Line2D([], [], color=style.FAINT, marker="v", markersize=4.5, label="mean and 95 % interval over texts")]
    return [*keys, mark(".", style.INK, 4, f"mean of each of {seeds} seeds")] if seeds > 1 else keys


def mark_means(panel: Axes, groups: Sequence[Group], tallest: float) -> None:
    """Above bars of this maximum height, one row per class: mean of `value`, its interval, and each seed's mean."""
    step = 0.09 * tallest
    # The marks lie above the y axis of the bars, which has no ticks there.
    ticks = [tick for tick in panel.get_yticks() if tick <= tallest]
    panel.set(ylim=(0, tallest + step * (len(groups) + 0.9)), yticks=ticks)
    for row, group in enumerate(groups, start=1):
        if group.rows.empty:
            continue
        mean, half = interval(group.rows)
        height = tallest + step * row
        marks: dict[str, Any] = {"color": group.colour, "markersize": 4.5, "linewidth": 1.2, "clip_on": False}
        panel.errorbar(mean, height, xerr=half, fmt="v", zorder=3, **marks)
        seeds = group.rows.groupby("seed")["value"].mean()
        if len(seeds) > 1:
            panel.plot(seeds, [height] * len(seeds), ".", color=style.INK, markersize=2.5, zorder=4, clip_on=False)
