"""Pictures under the importance that each measure gives their pixels, with the region that the label follows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumbline.figures import style
from plumbline.figures.conventions import brightest

# Inches of a picture's side.
SIDE = 0.86
REGION_COLOUR = "#00A3A3"


@dataclass(frozen=True)
class ExplainedImage:
    """A picture [H, H, 3], what is told of it, the region that the label follows [H, H], and the map [H, H] of each
    measure with its share on that region."""

    picture: np.ndarray
    caption: str
    region: np.ndarray
    maps: Mapping[str, np.ndarray]
    shares: Mapping[str, float]


def saliency(rows: Sequence[ExplainedImage], title: str) -> Figure:
    """A row for each picture: as it is, then under each measure's map; the outline is that of the region."""
    measures = style.ordered({measure for row in rows for measure in row.maps})
    if not rows or not measures:
        return style.sentence_figure(f"{title}: No picture was explained.")
    with style.theme():
        width = max(style.ONE_COLUMN, SIDE * (len(measures) + 1) + 0.2)
        figure = style.new_figure(width, (SIDE + 0.3) * len(rows) + 0.8)
        grid = figure.subplots(len(rows), len(measures) + 1, squeeze=False)
        for line, row in zip(grid, rows, strict=True):
            _show(line[0], row.picture, row.region, f"{row.caption}\nregion {100 * row.region.mean():.0f} %")
            for axes, measure in zip(line[1:], measures, strict=True):
                share = row.shares.get(measure, np.nan)
                told = "no importance" if np.isnan(share) else f"{100 * share:.0f} %"
                _show(axes, _heated(row.picture, row.maps.get(measure)), row.region, told)
        for axes, name in zip(grid[0], ["picture", *measures], strict=True):
            axes.set_title(name.replace("-", "\n", 1) if len(name) > 12 else name, fontsize=6.5)
        told = f"{title}\nbelow each map the share of\nimportance inside the outline"
        figure.suptitle(told, x=0.01, ha="left", fontsize=8)
    return figure


def _heated(picture: np.ndarray, scores: np.ndarray | None) -> np.ndarray:
    """The picture in pale grey under the map, from nothing to red, [H, H, 3]."""
    grey = 0.55 + 0.45 * picture.mean(axis=2, keepdims=True) / 255
    if scores is None:
        return np.repeat(grey, 3, axis=2)
    heat = np.clip(np.abs(scores) / brightest(scores), 0, 1)[..., None]
    return grey * (1 - heat) + np.array([0.70, 0.11, 0.16]) * heat


def _show(axes: Axes, picture: np.ndarray, region: np.ndarray, caption: str) -> None:
    axes.imshow(picture, interpolation="nearest")
    if 0 < region.mean() < 1:
        axes.contour(region, levels=[0.5], colors=REGION_COLOUR, linewidths=0.8)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlabel(caption, fontsize=6, labelpad=2)
    for edge in axes.spines.values():
        edge.set_visible(False)
