"""Saliency maps: images under each measure's pixel importances, with the effective region outlined."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumbline.figures import style
from plumbline.figures.conventions import brightest

# Side of an image in inches.
SIDE = 0.86
REGION_COLOUR = "#00A3A3"


@dataclass(frozen=True)
class ExplainedImage:
    """An image [H, H, 3] with its caption, its effective region [H, H] and each measure's map [H, H] and share of
    importance on the region."""

    image: np.ndarray
    caption: str
    region: np.ndarray
    maps: Mapping[str, np.ndarray]
    shares: Mapping[str, float]


def saliency(rows: Sequence[ExplainedImage], title: str) -> Figure:
    """A row for each image: the image, then each measure's map over it, with the region outlined."""
    measures = style.ordered({measure for row in rows for measure in row.maps})
    if not rows or not measures:
        return style.sentence_figure(f"{title}: no image was explained.")
    with style.theme():
        width = max(style.ONE_COLUMN, SIDE * (len(measures) + 1) + 0.2)
        figure = style.new_figure(width, (SIDE + 0.3) * len(rows) + 0.8)
        grid = figure.subplots(len(rows), len(measures) + 1, squeeze=False)
        for panels, row in zip(grid, rows, strict=True):
            _show(panels[0], row.image, row.region, f"{row.caption}\nregion {100 * row.region.mean():.0f} %")
            for axes, measure in zip(panels[1:], measures, strict=True):
                share = row.shares.get(measure, np.nan)
                label = "no importance" if np.isnan(share) else f"{100 * share:.0f} %"
                _show(axes, _overlay(row.image, row.maps.get(measure)), row.region, label)
        for axes, name in zip(grid[0], ["image", *measures], strict=True):
            axes.set_title(name.replace("-", "\n", 1) if len(name) > 12 else name, fontsize=6.5)
        heading = f"{title}\nbelow each map: share of\nimportance inside the outline"
        figure.suptitle(heading, x=0.01, ha="left", fontsize=8)
    return figure


def _overlay(image: np.ndarray, scores: np.ndarray | None) -> np.ndarray:
    """The image in pale grey with the map over it in red [H, H, 3]."""
    grey = 0.55 + 0.45 * image.mean(axis=2, keepdims=True) / 255
    if scores is None:
        return np.repeat(grey, 3, axis=2)
    heat = np.clip(np.abs(scores) / brightest(scores), 0, 1)[..., None]
    return grey * (1 - heat) + np.array([0.70, 0.11, 0.16]) * heat


def _show(axes: Axes, image: np.ndarray, region: np.ndarray, caption: str) -> None:
    axes.imshow(image, interpolation="nearest")
    if 0 < region.mean() < 1:
        axes.contour(region, levels=[0.5], colors=REGION_COLOUR, linewidths=0.8)
    axes.set(xticks=[], yticks=[])
    axes.set_xlabel(caption, fontsize=6, labelpad=2)
    axes.spines[:].set_visible(False)
