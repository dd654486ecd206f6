"""One look for all figures: theme, colours, sizes and how a figure is written to disk.

Figures are made without pyplot, so nothing is left open and no state is shared between them.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import matplotlib
import seaborn as sns
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from plumbline.store import replacing

# Widths in inches that fit one and two columns of a paper.
ONE_COLUMN = 3.4
TWO_COLUMNS = 6.9
DOTS_PER_INCH = 160
FORMATS = ("svg", "pdf", "png")

INK = "#22262b"
FAINT = "#6b727c"
BAR = "#5b7083"

# Okabe & Ito's colours first, which people with any common colour blindness tell apart; their yellow is darkened for
# paper. There are more measures than such colours; the names always stand beside them.
MEASURES = {
    "attention": "#0072B2",
    "rollout": "#00A3A3",
    "attention-flow": "#006D77",
    "attention-x-gradient": "#5C6BC0",
    "gradient": "#D55E00",
    "gradient-attached": "#E69F00",
    "input-x-gradient": "#CC79A7",
    "gradient-norm": "#A08A00",
    "gradient-vocabulary": "#B8400E",
    "lime": "#6B8E23",
    "lime-published": "#A3B86C",
    "integrated-gradient": "#56B4E9",
    "integrated-gradient-published": "#23316E",
    "integrated-gradient-pad": "#4F86C6",
    "grad-x-diff": "#C0392B",
    "deep-lift": "#7B3F00",
    "grad-shap": "#8E44AD",
    "deep-shap": "#5E3C99",
    "deep-shap-published": "#B39CD0",
    "mutual-information": "#8A1C4B",
    "leave-one-out": "#009E73",
    "occlusion": "#2E7D32",
    "selection": "#AD1457",
    "gradient-channels": "#E8590C",
    "smooth-grad": "#F59F00",
    "smooth-grad-abs": "#C9A227",
    "grad-cam": "#1098AD",
    "lime-superpixels": "#66A80F",
    "expected-gradient": "#7048E8",
    "occlusion-patch": "#2B8A3E",
    "random": "#8C8C8C",
}
# Paul Tol's muted colours and a lighter and a darker shade of each, for measures that are not known here: enough that
# two of them rarely share one.
MUTED = ["#332288", "#88CCEE", "#44AA99", "#117733", "#999933", "#DDCC77", "#CC6677", "#882255", "#AA4499"]
OTHER_MEASURES = [
    to_hex(shade)
    for colour in MUTED
    for shade in (colour, sns.light_palette(colour, 10)[6], sns.dark_palette(colour, 10)[6])
]
# Paul Tol's high-contrast colours first: they stay apart where two histograms overlap, and in grey.
CLASSES = ["#DDAA33", "#004488", "#BB5566", "#66CCEE", "#228833", "#AA3377"]

# Written text becomes outlines in SVG: it then looks the same in a page, on any machine and with any fonts.
LOOK: dict[str, Any] = {
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
    "hatch.linewidth": 0.5,
}


@contextmanager
def look() -> Iterator[None]:
    """The theme, for as long as a figure is drawn or saved; what others set for theirs is left alone."""
    with matplotlib.rc_context(), sns.plotting_context("paper"), sns.axes_style("whitegrid"):
        matplotlib.rcParams.update(cast(Any, LOOK))
        yield


def measure_colour(measure: str) -> str:
    """The colour of a measure, the same in every figure and on the page."""
    if measure in MEASURES:
        return MEASURES[measure]
    # Not Python's own hash, which differs from process to process.
    return OTHER_MEASURES[int(hashlib.sha256(measure.encode()).hexdigest(), 16) % len(OTHER_MEASURES)]


def class_colour(index: int) -> str:
    """The colour of a predicted class."""
    return CLASSES[index % len(CLASSES)]


def ordered(measures: Iterable[str]) -> list[str]:
    """Measures in the order in which figures show them: the known ones first, then the others by name."""
    known = list(MEASURES)
    return sorted(set(measures), key=lambda name: (known.index(name) if name in known else len(known), name))


def reference_measure(measures: Iterable[str], wanted: str = "attention") -> str:
    """The measure that all others are set against: attention or, for a model that has none, the first one."""
    names = ordered(measures)
    return wanted if wanted in names else names[0]


def ink_on(colour: Any) -> str:
    """Dark or white letters, whichever can be read better on this ground."""
    # At this luminance, as web guidelines define it, both have the same contrast.
    return INK if sns.utils.relative_luminance(colour) > 0.22 else "white"


def signed(value: float) -> str:
    """Two decimals with a true minus sign, and no sign on zero."""
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that knows how to measure its own text. Sizes in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def sentence(text: str, width: float = ONE_COLUMN, height: float = 1.2) -> Figure:
    """A figure that holds nothing but a sentence, for what cannot be drawn."""
    with look():
        figure = new_figure(width, height)
        figure.text(0.5, 0.5, text, ha="center", va="center", color=FAINT, wrap=True)
    return figure


def save(figure: Figure, paths: str | Path | Sequence[str | Path]) -> None:
    """Write a figure to each path by its suffix, or to svg, pdf and png for one path without any of these.

    The same figure gives the same bytes: ids in SVG come from a fixed salt and no date is written.
    """
    if isinstance(paths, str | Path):
        stem = Path(paths)
        paths = (
            [stem] if stem.suffix[1:] in FORMATS else [stem.with_name(f"{stem.name}.{suffix}") for suffix in FORMATS]
        )
    undated: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    for path in map(Path, paths):
        kind = path.suffix[1:]
        with look(), replacing(path) as temporary:
            figure.savefig(temporary, format=kind, dpi=DOTS_PER_INCH, metadata=undated[kind])
