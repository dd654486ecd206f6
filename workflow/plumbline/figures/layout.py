"""Sizes of figures and text in inches and points."""

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path


def text_width(line: str, size: float) -> float:
    """The width of a line of text in points, as outlines."""
    return float(text_to_path.get_text_width_height_descent(line, FontProperties(size=size), False)[0])


def fit_height(figure: Figure, panels: float) -> None:
    """Give the panels this height in inches below the legend, which `head` has drawn."""
    (legend,) = figure.legends
    figure.set_figheight(panels + legend.get_window_extent().height / figure.dpi + 0.1)
