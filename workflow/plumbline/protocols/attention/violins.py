"""Violins by predicted class and by bin of the largest attention weight."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from scipy.stats import gaussian_kde

from plumbline.figures import style
from plumbline.figures.classes import Group, mark
from plumbline.protocols.attention.bins import BINS, weight_bins

# Fewer texts than this are drawn as points instead of a density.
FEWEST = 5
# Points of an outline: enough to be smooth, few enough for a page of many figures.
POINTS = 48
LARGEST_WEIGHT = "largest attention weight"
QUARTILE: dict[str, Any] = {"linewidth": 0.8, "linestyle": (0, (2, 1.5))}
MEDIAN: dict[str, Any] = {"linewidth": 1.3}


class Slot(NamedTuple):
    """The position of a violin: its baseline, and its largest extent above and below it."""

    baseline: float
    up: float
    down: float

    @property
    def middle(self) -> float:
        """The centre of the violin."""
        return self.baseline + (self.down - self.up) / 2

    def span(self, width: float = 1) -> list[float]:
        """The ends of a vertical line across the violin, at this share of its largest extent."""
        return [self.baseline - self.up * width, self.baseline + self.down * width]


def with_bins(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """The rows with a number in this column, copied to `value`, and with the bin of their largest weight in `bin`."""
    rows = frame.dropna(subset=[column, "max_attention"])
    return rows.assign(value=rows[column], bin=weight_bins(rows["max_attention"]))


def violins_height(groups: list[Group]) -> float:
    """Height of the bins of a panel in inches."""
    return len(BINS) * (0.5 if len(groups) < 3 else 0.66)


def slots(bin_: int, count: int) -> list[Slot]:
    """The slots of the violins of `count` classes in a bin; two share a baseline, one above and one below it."""
    if count == 2:
        return [Slot(bin_ - 0.02, 0.4, 0), Slot(bin_ + 0.02, 0, 0.4)]
    height = 0.84 / count
    baselines = [bin_ - 0.42 + height * (i + 0.5) for i in range(count)]
    return [Slot(baseline, 0.46 * height, 0.46 * height) for baseline in baselines]


def draw_violins(panel: Axes, groups: list[Group], bounds: tuple[float, float]) -> None:
    """Violins of `value` by bin of the largest weight and by class; `bounds` are the least and greatest possible."""
    for i, bin_ in enumerate(BINS):
        if i:
            panel.axhline(i - 0.5, color="#e9ebee", linewidth=0.6, zorder=0.5)
        for group, slot in zip(groups, slots(i, len(groups)), strict=True):
            values = group.rows.loc[group.rows["bin"] == bin_, "value"].to_numpy()
            _violin(panel, values, slot, group.colour, bounds)
    panel.set(ylim=(len(BINS) - 0.5, -0.5), yticks=range(len(BINS)), yticklabels=BINS)
    panel.tick_params(axis="y", length=0)
    panel.grid(visible=False, axis="y")


def _violin(panel: Axes, values: np.ndarray, slot: Slot, colour: str, bounds: tuple[float, float]) -> None:
    """A density with its quartiles; points for few texts; a line if all values are equal."""
    if not len(values):
        return
    line: dict[str, Any] = {"zorder": 3, "solid_capstyle": "butt"}
    if len(values) < FEWEST:
        points: dict[str, Any] = {"alpha": 0.8, "markersize": 3.2, "zorder": 3, "clip_on": False}
        panel.plot(values, [slot.middle] * len(values), "o", color=colour, **points)
        return
    if np.ptp(values) < 1e-6:
        panel.plot([values[0]] * 2, slot.span(), color=colour, linewidth=2.2, clip_on=False, **line)
        return
    x, width = density(values, bounds)
    panel.fill(*_outline(x, width, slot), facecolor=to_rgba(colour, 0.6), edgecolor=colour, linewidth=0.9, zorder=2)
    for quantile, look in ((0.25, QUARTILE), (0.5, MEDIAN), (0.75, QUARTILE)):
        value = float(np.quantile(values, quantile))
        panel.plot([value] * 2, slot.span(float(np.interp(value, x, width))), color=style.INK, **line, **look)


def _outline(x: np.ndarray, width: np.ndarray, slot: Slot) -> tuple[np.ndarray, np.ndarray]:
    """Points around a violin, forward along the upper side and back along the lower; a straight side has two points."""
    straight = x[[0, -1]], np.zeros(2)
    x_up, up = (x, width) if slot.up else straight
    x_down, down = (x, width) if slot.down else straight
    y = [slot.baseline - slot.up * up, slot.baseline + slot.down * down[::-1]]
    return np.concatenate([x_up, x_down[::-1]]), np.concatenate(y)


def density(values: np.ndarray, bounds: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Kernel density between the least and the greatest value, scaled to a maximum of 1.

    The mass of a Gaussian beyond the bounds is reflected, since no value can be there.
    """
    x = np.linspace(values.min(), values.max(), POINTS)
    # Silverman's rule with the smaller of two spreads; the standard deviation oversmooths two peaks or a long tail.
    spread = float(np.std(values, ddof=1))
    interquartile = float(np.subtract(*np.quantile(values, (0.75, 0.25)))) / 1.34
    bandwidth = 0.9 * min(spread, interquartile or spread) * len(values) ** -0.2
    # No finer than the outline.
    kernel = gaussian_kde(values, max(bandwidth, np.ptp(values) / POINTS) / spread)
    low, high = bounds
    width = kernel(x) + kernel(2 * low - x) + kernel(2 * high - x)
    return x, width / width.max()


def bin_counts(groups: list[Group]) -> list[list[int]]:
    """The number of rows by bin and class."""
    return [[int((group.rows["bin"] == bin_).sum()) for group in groups] for bin_ in BINS]


def count_texts(panel: Axes, groups: list[Group]) -> None:
    """The number of texts of each violin, right of it."""
    counts = [[f"{count:,}".replace(",", "\u202f") for count in row] for row in bin_counts(groups)]
    # A digit of this font size is four points wide.
    right = 5 + 4 * max(len(count) for row in counts for count in row)
    look: dict[str, Any] = {"textcoords": "offset points", "fontsize": 6.5, "color": style.FAINT}
    for i, row in enumerate(counts):
        for count, slot in zip(row, slots(i, len(groups)), strict=True):
            position: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "xytext": (right, 0)}
            panel.annotate(count, (1, slot.middle), ha="right", va="center", **position, **look)
    several = pd.concat([group.rows["seed"] for group in groups]).nunique() > 1
    label = "texts\n× seeds" if several else "texts"
    panel.annotate(label, (1, 1), xycoords="axes fraction", xytext=(6, 5), va="bottom", **look)


def violin_keys(groups: list[Group]) -> list[Line2D]:
    """Legend of the lines and points of violins."""
    keys = [
        Line2D([], [], color=style.INK, label="median", **MEDIAN),
        Line2D([], [], color=style.INK, label="quartiles", **QUARTILE),
    ]
    if any(0 < count < FEWEST for row in bin_counts(groups) for count in row):
        keys.append(mark("o", style.FAINT, 3.2, "single texts"))
    return keys
