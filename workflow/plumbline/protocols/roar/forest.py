"""Forest plot of faithfulness: every measure with its interval, by dataset and model, next to published values."""

from collections.abc import Sequence
from itertools import pairwise, product
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.figures import style
from plumbline.figures.classes import mark
from plumbline.figures.drawing import Drawing
from plumbline.figures.layout import finish, panel_figure
from plumbline.protocols.roar.figures import NOTHING, STRATEGIES, UNITS
from plumbline.protocols.roar.schemas import FAITHFULNESS
from plumbline.registry import figure

# The columns of published values, which are shares as ours are.
PUBLISHED = ["dataset", "model", "measure", "value", "ci_low", "ci_high"]
CELL = ["dataset", "model"]
# The kinds of points, in the order of their lanes and of the legend.
KINDS = {"published": "published (recursive)", **STRATEGIES}
HIGHER = "Further right is better; 0: no better than masking at random."
SHARE = "faithfulness\n(share of the area from random to all masked)"
# The largest height of the panels and the height of a lane, in inches.
TALLEST = 8.0
LANE = 0.068
# In lanes: the gaps between measures and between rows, and the smallest height of a row.
BETWEEN_MEASURES = 0.5
BETWEEN_ROWS = 2.4
LEAST = 4.5


def faithfulness_figure(faithfulness: pd.DataFrame, published: pd.DataFrame | None) -> Figure:
    """The faithfulness of every measure with its interval, by dataset and model: filled for the recursive strategy,
    hollow for the other; absolute levels have a panel of their own.

    `faithfulness` has rows of the table of that name, of one metric per dataset; `published` has the columns
    `PUBLISHED`, for relative levels.
    """
    ours = faithfulness[faithfulness["status"] == "ok"].dropna(subset=["faithfulness"])
    if ours.empty:
        return style.sentence_figure(f"Faithfulness: {NOTHING}")
    theirs = pd.DataFrame(columns=PUBLISHED) if published is None else published.dropna(subset=["value"])
    theirs = theirs.rename(columns={"value": "faithfulness"}).assign(strategy="published", unit="relative")
    keys = [*CELL, "measure"]
    theirs = theirs[pd.MultiIndex.from_frame(theirs[keys]).isin(pd.MultiIndex.from_frame(ours[keys]))]
    rows = pd.concat([ours, theirs]) if len(theirs) else ours
    kinds = [kind for kind in KINDS if kind in set(rows["strategy"])]
    units = [unit for unit in UNITS if unit in set(rows["unit"])]
    cells = list(dict.fromkeys(ours[CELL].itertuples(index=False, name=None)))
    # A plot too high for a page is split into two blocks side by side.
    half = ceil(len(cells) / 2) if Lanes(ours, cells, kinds).height > TALLEST else len(cells)
    blocks = [Lanes(ours, cells[first : first + half], kinds) for first in range(0, len(cells), half)]
    with style.theme():
        figure = panel_figure(style.ONE_COLUMN if len(blocks) * len(units) == 1 else style.TWO_COLUMNS)
        panels = figure.subplots(1, len(blocks) * len(units), squeeze=False)[0]
        for panel, (lanes, unit) in zip(panels, product(blocks, units), strict=True):
            points = rows[rows["unit"] == unit]
            for point in points.to_dict("records"):
                position = lanes.positions.get((*(point[key] for key in keys), point["strategy"]))
                if position is not None:
                    _plot_point(panel, point, position)
            lanes.prepare(panel, unit == units[0])
            values = points[["faithfulness", "ci_low", "ci_high"]].to_numpy(float)
            # A narrow axis would exaggerate small differences.
            panel.set_xlim(min(-0.1, np.nanmin(values) - 0.03), max(0.3, np.nanmax(values) + 0.03))
            if len(units) > 1:
                panel.set_title("by percent of words" if unit == "relative" else "by number of words", loc="left")
            label = SHARE if len(panels) < 3 else "faithfulness"
            panel.set_xlabel(label, fontsize=7, loc="right" if len(panels) == 1 else "center")
        legend = [mark("o", style.measure_colour(name), 4, name) for name in style.ordered(ours["measure"])]
        if len(kinds) > 1:
            legend += [Line2D([], [], label=KINDS[kind], **_marker(kind, style.INK)) for kind in kinds]
        note = f"{HIGHER} {SHARE.capitalize()}.".replace("\n", " ") if len(panels) > 2 else HIGHER
        height = max(lanes.height for lanes in blocks) + 0.45
        finish(figure, "Faithfulness by masking and retraining", legend, note, height)
    return figure


class Lanes:
    """The vertical positions of the points, from top to bottom: a row for each of `cells`, which are pairs of dataset
    and model, and in it a lane for each kind of point of each measure."""

    def __init__(self, ours: pd.DataFrame, cells: Sequence[tuple[str, str]], kinds: Sequence[str]) -> None:
        self.positions: dict[tuple[str, ...], float] = {}
        self.names = [f"{dataset}\n{model}" for dataset, model in cells]
        self.edges = [0.0]
        for dataset, model in cells:
            measures = style.ordered(ours.loc[(ours["dataset"] == dataset) & (ours["model"] == model), "measure"])
            step = len(kinds) + BETWEEN_MEASURES
            used = len(measures) * step - BETWEEN_MEASURES
            room = max(used, LEAST) + BETWEEN_ROWS
            first = self.edges[-1] + (room - used + 1) / 2
            for (i, measure), (j, kind) in product(enumerate(measures), enumerate(kinds)):
                self.positions[dataset, model, measure, kind] = first + i * step + j
            self.edges.append(self.edges[-1] + room)

    @property
    def height(self) -> float:
        """The height of all rows in inches."""
        return LANE * self.edges[-1]

    def prepare(self, panel: Axes, names: bool) -> None:
        """Separate the rows, name them if `names`, and draw the zero line of masking at random."""
        middles = [(top + bottom) / 2 for top, bottom in pairwise(self.edges)]
        panel.set_yticks(middles, self.names if names else [""] * len(middles), parse_math=False)
        panel.set_ylim(self.edges[-1], 0)
        for edge in self.edges[1:-1]:
            panel.axhline(edge, color="#d3d7dc", linewidth=0.6, zorder=0.5)
        panel.axvline(0, color=style.INK, linewidth=0.8, zorder=1)
        panel.tick_params(axis="y", length=0)
        panel.grid(visible=False, axis="y")
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:.10g}".replace("-", "−"))


def _plot_point(panel: Axes, point: dict[Any, Any], y: float) -> None:
    marker = _marker(point["strategy"], style.measure_colour(point["measure"]))
    bar = {"color": marker["color"], "linewidth": 1, "zorder": 2, "solid_capstyle": "butt"}
    panel.plot([point["ci_low"], point["ci_high"]], [y, y], **bar)
    panel.plot(point["faithfulness"], y, zorder=3, clip_on=False, **marker)


def _marker(kind: str, colour: str) -> dict[str, Any]:
    """The marker of a kind of point."""
    if kind == "published":
        return {"linestyle": "", "marker": "D", "markersize": 3.4, "color": lightened(colour), "markeredgewidth": 0}
    marker = {"linestyle": "", "marker": "o", "markersize": 3.6, "color": colour, "markeredgewidth": 0.9}
    return marker | {"markerfacecolor": colour if kind == "recursive" else "white"}


def lightened(colour: str) -> str:
    """The colour mixed with as much white, for published values."""
    red, green, blue = to_rgb(colour)
    return to_hex((0.5 + red / 2, 0.5 + green / 2, 0.5 + blue / 2))


@figure(
    "faithfulness",
    reads=["faithfulness", "reproduction"],
    params=["order"],
    page="masking",
    experiment="masking and retraining",
    order=130,
)
def draw_faithfulness(drawing: Drawing) -> Figure:
    """Faithfulness (horizontally) of every measure (colour) by dataset and model (rows), with 95 % intervals over seeds
    (BCa bootstrap): filled circles for Recursive ROAR, hollow ones for ROAR, pale diamonds for published values. It is
    the area between the curve of masking at random and that of the measure, as a share of the area between random and
    everything masked. Further right is better; at 0 the measure is no better than masking at random.
    """
    order = {name: i for i, name in enumerate(drawing.facts["order"])}
    ours = drawing.frame(FAITHFULNESS)
    ours = ours.sort_values(CELL, key=lambda column: column.astype(str).map(order), kind="stable")
    # Only published values that ours are compared with: the others were obtained under different conditions.
    theirs = drawing.any_frame("reproduction")
    theirs = theirs[
        (theirs["study"] == "Recursive ROAR") & (theirs["metric"] == "faithfulness") & theirs["within"].notna()
    ]
    columns = {"measure_a": "measure", "published": "value", "published_low": "ci_low", "published_high": "ci_high"}
    return faithfulness_figure(ours, theirs.rename(columns=columns).reindex(columns=PUBLISHED))
