"""The JSD-TVD plane of adversaries: how much their attention and their output differ from the base model's (Wiegreffe &
Pinter 2019; AtteFa, Figure 1)."""

from itertools import pairwise
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Affine2D

from plumbline.figures import style
from plumbline.figures.classes import add_legend, mark
from plumbline.figures.drawing import Drawing
from plumbline.figures.layout import fit_height, text_width
from plumbline.protocols.adversary.figures import NO_ADVERSARY, objective_rows
from plumbline.protocols.adversary.schemas import ADVERSARY
from plumbline.protocols.adversary.table import LARGEST_JSD, LARGEST_TVD, one_selection
from plumbline.protocols.attention.bins import EVERY
from plumbline.protocols.attention.figures import axis_end, jsd_axis
from plumbline.protocols.attention.schemas import SEED_VARIANCE
from plumbline.registry import figure

XY = ["jsd", "tvd"]
TVD_ENDS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, LARGEST_TVD)
LEVELS = (0.1, 0.25, 0.5, 0.75, 1)
LEVEL: dict[str, Any] = {"color": "#d3d7dc", "linewidth": 0.7, "zorder": 1}
CURVE, ONE_SHOT = style.CLASSES[1], style.CLASSES[2]
# Candidate positions of a label: these distances in points from its point, in every direction.
RADII = np.array([4, 7, 11, 16, 22, 29, 37, 46])
ANGLES = np.linspace(0, 2 * np.pi, 16, endpoint=False)
DIRECTIONS = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
FONT_SIZE = 6.5
ROUNDS = 4
# Points of a curve closer than this, in points of print, share a label.
NEAR = 4


def jsd_tvd_plane(adversary: pd.DataFrame, seeds: pd.DataFrame | None, title: str) -> Figure:
    """The distances of attention (JSD) and output (TVD) between a base model and its adversaries.

    `adversary` has rows of the table of that name for one dataset and model; `seeds` has the columns seed, jsd and tvd:
    the distances between the base model and the same model trained from other seeds.
    """
    swept, one_shot = (one_selection(objective_rows(adversary, name, XY)) for name in ("wiegreffe-pinter", "attefa"))
    seeds = swept[:0] if seeds is None else seeds.dropna(subset=XY)
    points = pd.concat([rows[XY] for rows in (swept, one_shot, seeds)])
    if points.empty:
        return style.sentence_figure(f"{title}: {NO_ADVERSARY}")
    curve = swept.groupby("strength")[XY].mean()
    mean = one_shot[XY].mean().to_frame().T.dropna()
    with style.theme():
        figure = style.new_figure(style.ONE_COLUMN, 1)
        panel = figure.subplots()
        jsd_axis(panel)
        panel.set(ylim=(0, axis_end(1.05 * points["tvd"], TVD_ENDS)))
        panel.set(xlabel="difference of attention (JSD)", ylabel="difference of output (TVD)")
        panel.grid(visible=False)
        _plot_levels(panel)
        _plot_points(panel, swept, "o", 2.4, CURVE, alpha=0.4, markeredgewidth=0)
        _plot_points(panel, one_shot, "*", 4.5, ONE_SHOT, alpha=0.4, markeredgewidth=0)
        several = len(swept) > len(curve) or len(one_shot) > 1
        keys = [
            *_plot_points(panel, curve, "o-", 4, CURVE, linewidth=1.2, label="adversaries, by λ"),
            *_plot_points(panel, mean, "*", 10, ONE_SHOT, markeredgecolor="white", label="AtteFa's adversary"),
            *([mark("o", "#b4b8bd", 2.4, "single seeds")] if several else []),
            *_plot_points(panel, seeds, "x", 4, style.FAINT, label="base model, other seeds"),
            Line2D([], [], **LEVEL, label="equal AtteFa"),
        ]
        add_legend(figure, title, [], keys)
        fit_height(figure, 2.75)
        if len(curve):
            names = [f"{strength:g}".replace("e-0", "e-") for strength in curve.index]
            label_points(panel, curve, [f"λ = {names[0]}", *names[1:]], points)
    return figure


def _plot_points(panel: Axes, points: pd.DataFrame, marker: str, size: float, colour: str, **line: Any) -> list[Line2D]:
    """Plot the points, if there are any."""
    line |= {"markersize": size, "color": colour, "zorder": 3, "clip_on": False}
    return panel.plot(points["jsd"], points["tvd"], marker, **line) if len(points) else []


def _plot_levels(panel: Axes) -> None:
    """Lines of equal AtteFa, each with its value where it leaves the panel."""
    top = panel.get_ylim()[1]
    text: dict[str, Any] = {"textcoords": "offset points", "fontsize": FONT_SIZE, "color": style.FAINT}
    for level in LEVELS:
        share = min(1, top / (level * LARGEST_TVD))
        x, y = share * LARGEST_JSD, share * level * LARGEST_TVD
        panel.plot([0, x], [0, y], **LEVEL)
        label = f"{level:g}".lstrip("0")
        if share == 1:
            panel.annotate(label, (1, y), xycoords=("axes fraction", "data"), xytext=(3, 0), va="center", **text)
        else:
            panel.annotate(label, (x, 1), xycoords=("data", "axes fraction"), xytext=(0, 2), ha="center", **text)


def label_points(panel: Axes, curve: pd.DataFrame, names: list[str], marks: pd.DataFrame) -> None:
    """Label the points of a curve: inside the panel, without overlapping labels, and over as few `marks` as possible.

    Points that coincide share a label with all their names.
    """
    figure = cast(Figure, panel.get_figure(root=True))
    figure.draw_without_rendering()
    # In points of print, as laid out now; labels take no part in the layout.
    to_points = panel.transData + Affine2D().scale(72 / figure.dpi)
    vertices = to_points.transform(curve[XY])
    steps = np.linalg.norm(np.diff(vertices, axis=0), axis=1)
    clusters = np.split(np.arange(len(vertices)), np.flatnonzero(steps > NEAR) + 1)
    labels = [", ".join(names[i] for i in cluster) for cluster in clusters]
    points = np.array([vertices[cluster].mean(0) for cluster in clusters])
    segments = [np.linspace(start, end, 24) for start, end in pairwise(vertices)]
    ink = np.concatenate([vertices, to_points.transform(marks[XY]), *segments])
    (left, bottom), (_, top) = 72 / figure.dpi * panel.bbox.get_points()
    bounds = np.array([(left, bottom), (to_points.transform((LARGEST_JSD, 0))[0], top)])
    boxes = np.full((len(labels), 2, 2), np.nan)
    # Each label in turn takes the best free position; later rounds improve on the first.
    for i in [*range(len(labels))] * ROUNDS:
        half = np.array([text_width(labels[i], FONT_SIZE) / 2 + 1, FONT_SIZE / 2 + 0.5])
        other_points, other_boxes = (np.delete(values, i, axis=0) for values in (points, boxes))
        boxes[i] = _best_box(points[i], half, other_points, other_boxes, ink, bounds)
    for label, point, box in zip(labels, points, boxes, strict=True):
        panel.annotate(
            label,
            tuple(to_points.inverted().transform(point)),
            xytext=box.mean(0) - point,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=FONT_SIZE,
            color=CURVE,
            arrowprops={"arrowstyle": "-", "color": CURVE, "linewidth": 0.4, "shrinkA": 0, "shrinkB": 2},
            path_effects=[withStroke(linewidth=1.5, foreground="white")],
            in_layout=False,
            zorder=5,
        )


def _best_box(
    point: np.ndarray, half: np.ndarray, points: np.ndarray, boxes: np.ndarray, ink: np.ndarray, bounds: np.ndarray
) -> np.ndarray:
    """The lower left and upper right corner [2, 2] of the best position for a point's label of half size `half` [2],
    given the other `points` and the `boxes` of their labels."""
    centres = (point + (RADII[:, None, None] + half) * DIRECTIONS).reshape(-1, 2)
    low, high = centres - half, centres + half
    outside = ((low < bounds[0]) | (high > bounds[1])).any(1)
    on_labels = ((low[:, None] < boxes[:, 1]) & (high[:, None] > boxes[:, 0])).all(2).sum(1)
    on_ink = ((low[:, None] < ink) & (ink < high[:, None])).all(2).sum(1)
    # A leader that passes another point or label misleads, and so does a label that is nearer to another point.
    leaders = (point + np.linspace(0, 1, 12)[:, None, None] * (centres - point))[..., None, :]
    passes = (np.linalg.norm(leaders - points, axis=-1) < 3).any(0).sum(1)
    crosses = ((boxes[:, 0] < leaders) & (leaders < boxes[:, 1])).all(-1).any(0).sum(1)
    distances = np.linalg.norm(centres - point, axis=-1)[:, None]
    nearer = (np.linalg.norm(centres[:, None] - points, axis=-1) < distances).sum(1)
    misleading = passes + crosses + nearer
    cost = 1000 * (outside + on_labels) + 2 * on_ink + 3 * misleading + np.repeat(RADII, len(DIRECTIONS)) / 4
    best = cost.argmin()
    return np.array([low[best], high[best]])


@figure(
    "jsd-tvd-plane",
    reads=["adversary", "seed_variance?"],
    cells="adversaries",
    per=["dataset", "model"],
    page="adversaries",
    experiment="adversarial models",
    order=90,
)
def draw_plane(drawing: Drawing) -> Figure:
    """How different the attention of adversaries is from their base model’s (JSD, horizontally, 0 to ln 2) and how
    different their output is (TVD, vertically, 0 to 0.5). The curve joins the means over seeds for each strength λ of
    Wiegreffe & Pinter’s objective; the star is the mean for AtteFa’s objective; small marks are single seeds; crosses
    are the base model trained from other seeds. Towards the lower right, other attention gives the same output, so
    attention is not faithful. AtteFa is constant along each grey line, at whose end it is written.
    """
    rows, seeds = drawing.rows(ADVERSARY), None
    # Adversaries of another base seed are compared to another model.
    first = rows["base_seed"].min()
    if SEED_VARIANCE.name in drawing:
        seeds = drawing.rows(SEED_VARIANCE)
        seeds = seeds[(seeds["max_attention_bin"] == EVERY) & (seeds["base_seed"] == first)]
        seeds = seeds.rename(columns={"jsd_mean": "jsd", "tvd_mean": "tvd"})
    title = drawing.title + (f", seed {first}" if rows["base_seed"].nunique() > 1 else "")
    return jsd_tvd_plane(rows[rows["base_seed"] == first], seeds, title)
