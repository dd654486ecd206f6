"""Figures by predicted class: the rows of each class with its name and colour, and the title with the legend."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from plumbline.figures import style
from plumbline.figures.conventions import MOST_CLASSES


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
