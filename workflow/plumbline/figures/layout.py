"""The layout of figures: sizes in inches and points, grids of panels, heatmap cells, titles, legends and notes."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path

from plumbline.figures import style
from plumbline.figures.classes import add_legend

# Each line has a marker as well as a colour, for colour-blind readers.
MARKERS = "os^vPXd"


def text_width(line: str, size: float, **font: Any) -> float:
    """The width of a line of text in points, as outlines."""
    return float(text_to_path.get_text_width_height_descent(line, FontProperties(size=size, **font), False)[0])


def fit_height(figure: Figure, panels: float) -> None:
    """Give the panels this height in inches below the legend, which `add_legend` has drawn."""
    (legend,) = figure.legends
    figure.set_figheight(panels + legend.get_window_extent().height / figure.dpi + 0.1)


def panel_figure(width: float) -> Figure:
    """An empty figure; `finish` sets its height."""
    figure = style.new_figure(width, 1)
    figure.set_layout_engine("constrained", wspace=0.04)
    return figure


def finish(figure: Figure, title: str, keys: Sequence[Line2D], note: str, height: float) -> None:
    """Add title and legend above and a note below the panels, which are `height` inches high."""
    add_legend(figure, title, [], keys)
    width = figure.get_figwidth()
    lines = wrap(note, int(20 * width))
    figure.supxlabel("\n".join(lines), x=0.085 / width, ha="left", fontsize=6.5, color=style.FAINT)
    (legend,) = figure.legends
    figure.set_figheight(height + legend.get_window_extent().height / figure.dpi + 0.35 + 0.11 * len(lines))


def title_above(figure: Figure, title: str, subtitle: str) -> None:
    """A title with a faint subtitle."""
    figure.suptitle(f"{title}\n", x=0.02, ha="left", fontsize=9)
    height = 0.995 - 0.24 / figure.get_figheight()
    figure.text(0.02, height, subtitle, va="top", fontsize=7, color=style.FAINT)


def hide_unused(grid: np.ndarray, used: int) -> list[Axes]:
    """The used panels of a grid. The others are hidden; the panels above them get the tick labels of the x axis."""
    panels = list(grid.flat)
    for panel in panels[used:]:
        panel.set_visible(False)
    for panel in panels[max(0, used - grid.shape[-1]) : used]:
        panel.tick_params(labelbottom=True)
    return panels[:used]


def fill_cells(panel: Axes, background: np.ndarray) -> None:
    """The colours [rows, columns, 4] of a panel's cells."""
    panel.pcolormesh(background, edgecolor="white", linewidth=1.5)
    panel.grid(visible=False)
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)


def name_cells(panel: Axes, rows: Sequence[str], columns: Sequence[str], rotation: float = 40, first: int = 0) -> None:
    """Names of the rows, counted from `first`, and of the columns at the middle of their cells."""
    panel.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=rotation, ha="right", rotation_mode="anchor")
    panel.set_yticks(np.arange(len(rows)) + first + 0.5, rows)


def add_colour_bar(figure: Figure, panels: Axes | np.ndarray, colours: Colormap, least: float, **look: Any) -> Colorbar:
    """A colour bar from `least` to 1 next to the panels."""
    bar = figure.colorbar(ScalarMappable(Normalize(least, 1), colours), ax=panels, **look)
    bar.outline.set_visible(False)
    return bar


def write_cell(
    panel: Axes, row: int, column: int, text: str, raised: float, size: float, ink: str, weight: str = "normal"
) -> None:
    """Text in the middle of a cell, or `raised` points above it."""
    look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": size, "color": ink, "weight": weight}
    panel.annotate(text, (column + 0.5, row + 0.5), (0, raised), textcoords="offset points", **look)
