"""The style of all figures: theme, colours, sizes and writing to disk.

Figures are made without pyplot, so no figure stays open and none share state.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import matplotlib
import seaborn as sns
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from plumbline.figures.conventions import (
    BAR,
    CLASSES,
    FAINT,
    INK,
    MEASURES,
    MUTED,
    OTHER_MEASURES,
    class_colour,
    measure_colour,
    ordered,
    reference_measure,
)
from plumbline.store import replacing

# Re-exported.
__all__ = ["BAR", "CLASSES", "FAINT", "INK", "MEASURES", "MUTED", "OTHER_MEASURES"]
__all__ += ["class_colour", "measure_colour", "ordered", "reference_measure"]

# The widths of one and two columns of a paper, in inches.
ONE_COLUMN = 3.4
TWO_COLUMNS = 6.9
DOTS_PER_INCH = 160
FORMATS = ("svg", "pdf", "png")

# Text becomes outlines in SVG, so that it looks the same on any machine, whatever its fonts.
RC_PARAMS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "svg.fonttype": "path",
    "svg.hashsalt": "plumbline",
    "pdf.fonttype": 42,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#b9bec5",
    "axes.linewidth": 0.7,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.titleweight": "normal",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#e9ebee",
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "font.size": 8,
    # A dollar sign in a name does not start a formula.
    "text.parse_math": False,
    "hatch.linewidth": 0.5,
}


@contextmanager
def theme() -> Iterator[None]:
    """The theme while a figure is drawn or saved; global settings are restored afterwards."""
    with matplotlib.rc_context(), sns.plotting_context("paper"), sns.axes_style("whitegrid"):
        matplotlib.rcParams.update(cast(Any, RC_PARAMS))
        yield


def ink_on(colour: Any) -> str:
    """Dark or white text, whichever is easier to read on this background."""
    # At this relative luminance (WCAG) both have the same contrast.
    return INK if sns.utils.relative_luminance(colour) > 0.22 else "white"


def signed(value: float) -> str:
    """Two decimals with a true minus sign, and no sign on zero."""
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that can measure its own text. Sizes in inches."""
    figure = Figure(figsize=(width, height), layout="constrained", dpi=DOTS_PER_INCH)
    FigureCanvasAgg(figure)
    return figure


def sentence_figure(text: str, width: float = ONE_COLUMN, height: float = 1.2) -> Figure:
    """A figure with a sentence only, where there is nothing to draw."""
    with theme():
        figure = new_figure(width, height)
        figure.text(0.5, 0.5, text, ha="center", va="center", color=FAINT, wrap=True)
    return figure


def save(figure: Figure, paths: str | Path | Sequence[str | Path]) -> None:
    """Write a figure to each path by its suffix, or to svg, pdf and png for one path without any of these.

    The same figure gives the same bytes: SVG ids come from a fixed salt and no date is written.
    """
    if isinstance(paths, str | Path):
        stem = Path(paths)
        all_formats = [stem.with_name(f"{stem.name}.{suffix}") for suffix in FORMATS]
        paths = [stem] if stem.suffix[1:] in FORMATS else all_formats
    undated: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    with theme(), _laid_out(figure):
        for path in map(Path, paths):
            with replacing(path) as temporary:
                figure.savefig(temporary, format=path.suffix[1:], dpi=DOTS_PER_INCH, metadata=undated[path.suffix[1:]])


@contextmanager
def _laid_out(figure: Figure) -> Iterator[None]:
    """Compute the layout once for all formats: Matplotlib would do so for each, which takes longer than drawing."""
    figure.draw_without_rendering()
    engine = figure.get_layout_engine()
    figure.set_layout_engine(None)
    try:
        yield
    finally:
        figure.set_layout_engine(engine)
