"""Can a model attend elsewhere and say the same? (AtteFa, Figures 1 and 2; Wiegreffe & Pinter 2019, their seeds.)

Attentions are compared by JSD, from 0 to ln 2, and outputs by TVD on the studies' scale, from 0 to 0.5.
"""

from collections.abc import Iterator
from itertools import pairwise, product
from math import ceil
from textwrap import wrap
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D

from plumbline.figures import style
from plumbline.figures.classes import Group, add_legend, groups_of, mark
from plumbline.figures.drawing import Drawing
from plumbline.protocols.adversary.schemas import ADVERSARY
from plumbline.protocols.adversary.table import LARGEST_JSD, LARGEST_TVD
from plumbline.protocols.attention.bins import EVERY
from plumbline.protocols.attention.figures import NO_TEXTS, axis_end, jsd_axis, read_scores
from plumbline.protocols.attention.schemas import SEED_VARIANCE, SEED_VARIANCE_SCORES
from plumbline.protocols.attention.violins import (
    FEWEST,
    LARGEST_WEIGHT,
    count_texts,
    density,
    draw_violins,
    violin_keys,
    violins_height,
    with_bins,
)
from plumbline.registry import figure
from plumbline.tables.chance import DEFINED

# The columns that these figures read, in the order of the tables.
RUNS = ["dataset", "model", "objective", "strength", "selected_on", "tvd", "jsd", "attefa", "status"]
VARIANCES = ["seed", "split", "instance", "predicted_class", "base_seed", "max_attention", "jsd", "tvd"]

CELL = ["dataset", "model"]
PLACE = ["jsd", "tvd"]
NO_ADVERSARY = "No adversary was trained here."
DIRECTION = "0: other attention gives the same output, 1: it does not"

# Inches that a model's published value, its seeds and the same seeds chosen on the test split take, side by side.
ROOM = {"published": 0.08, "dev": 0.14, "test": 0.07}
BETWEEN_MODELS = 0.05
BETWEEN_DATASETS = 0.12
BETWEEN_NAMES = 0.08
AXIS = 0.55
# Where there is more room marks are larger and wider apart, up to this factor.
STRETCH = 2.2
LONGEST_LINE = 16
# The height of a row of datasets in inches, and the least size of a seed's dot in points.
TALL = 1.3
DOT = 2.7
FULL: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.3}
HOLLOW: dict[str, Any] = {"markerfacecolor": "white", "markeredgewidth": 0.8}
DIAMOND: dict[str, Any] = {"fmt": "D", "color": "black", "markersize": 2.6, "elinewidth": 0.8, "capsize": 1.5}

TVD_ENDS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, LARGEST_TVD)
LEVELS = (0.1, 0.25, 0.5, 0.75, 1)
LEVEL: dict[str, Any] = {"color": "#d3d7dc", "linewidth": 0.7, "zorder": 1}
CURVE, ONE_SHOT = style.CLASSES[1], style.CLASSES[2]
# Where a label may lie: so many points from what it names, in every direction.
RADII = np.array([4, 7, 11, 16, 22, 29, 37, 46])
ANGLES = np.linspace(0, 2 * np.pi, 16, endpoint=False)
DIRECTIONS = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
LABEL = 6.5
ROUNDS = 4
# Points of a curve that are no farther apart are drawn as one.
NEAR = 4

# A cloud of more texts than this is an image inside the figure.
MOST_SHAPES = 500


def by_base_seed(adversary: pd.DataFrame) -> pd.DataFrame:
    """Rows of the table in which models with adversaries of several seeds are told apart by the seed."""
    several = adversary.groupby(CELL, observed=True)["base_seed"].transform("nunique") > 1
    models = adversary["model"].astype(str)
    return adversary.assign(model=models.where(~several, models + ", seed " + adversary["base_seed"].astype(str)))


def attefa_violins(adversary: pd.DataFrame, published: pd.DataFrame | None) -> Figure:
    """The AtteFa score of every seed, by dataset and model; a violin around five or more seeds that differ.

    `adversary` has rows of the table of that name, `published` the columns dataset, model, value and std.
    """
    runs = _ran(adversary, "attefa", ["attefa"])
    runs = runs[runs["selected_on"].isin(["dev", "test"])]
    if runs.empty:
        return style.sentence_figure(f"AtteFa: {NO_ADVERSARY}")
    datasets, models = ([str(name) for name in runs[column].unique()] for column in CELL)
    groups = [Group(name, style.class_colour(i), runs[runs["model"] == name]) for i, name in enumerate(models)]
    told = pd.DataFrame(columns=[*CELL, "value", "std"]) if published is None else published.dropna(subset=["value"])
    told = told[told["dataset"].isin(datasets) & told["model"].isin(models)]
    kinds = [kind for kind in ROOM if kind in {*runs["selected_on"], *["published"] * len(told)}]
    clusters = Clusters(datasets, len(models), kinds)
    with style.theme():
        figure = _new_figure(clusters.width)
        for panel, here in clusters.panels(figure):
            for (place, dataset), (number, group) in product(enumerate(here), enumerate(groups)):
                at = clusters.places(place, number)
                ours, theirs = (rows[rows["dataset"] == dataset] for rows in (group.rows, told))
                for kind in ours["selected_on"].unique():
                    values = ours.loc[ours["selected_on"] == kind, "attefa"].to_numpy()
                    wide = 0.46 * clusters.stretch * ROOM[kind]
                    _seeds(panel, values, at[kind], wide, clusters.dot, group.colour, kind == "dev")
                for value, spread in theirs.loc[theirs["model"] == group.name, ["value", "std"]].to_numpy(float):
                    panel.errorbar(at["published"], value, spread, zorder=4, **DIAMOND)
        title = DIRECTION if clusters.width > style.ONE_COLUMN else DIRECTION.replace(", ", "\n")
        several = bool(runs.duplicated([*CELL, "selected_on"]).any())
        add_legend(figure, title, groups, _attefa_keys(kinds, clusters.dot, several))
        _fit(figure, clusters.height)
    return figure


class Clusters:
    """Where the models of each dataset stand, in inches: datasets in rows, their models side by side."""

    def __init__(self, datasets: list[str], models: int, kinds: list[str]) -> None:
        self.datasets, self.models, self.kinds = datasets, models, kinds
        self.names = ["\n".join(wrap(name, LONGEST_LINE)) for name in datasets]
        self.step = sum(ROOM[kind] for kind in kinds) + BETWEEN_MODELS
        marks = models * self.step - BETWEEN_MODELS
        widest = max(_wide(line) / 72 for name in self.names for line in name.split("\n"))
        need = max(marks + BETWEEN_DATASETS, widest + BETWEEN_NAMES)
        self.width = style.ONE_COLUMN if len(datasets) * need < style.ONE_COLUMN - AXIS else style.TWO_COLUMNS
        self.rows = ceil(len(datasets) / max(1, int((self.width - AXIS) / need)))
        self.columns = ceil(len(datasets) / self.rows)
        self.room = (self.width - AXIS) / self.columns
        self.stretch = min(STRETCH, (self.room - BETWEEN_DATASETS) / marks)
        self.dot = DOT * self.stretch**0.5

    @property
    def height(self) -> float:
        """Of all rows."""
        lines = 1 + max(name.count("\n") for name in self.names)
        return self.rows * (TALL + 0.15 + 0.13 * lines)

    def panels(self, figure: Figure) -> Iterator[tuple[Axes, list[str]]]:
        """A panel for each row, with its datasets."""
        grid = figure.add_gridspec(self.rows, self.columns)
        for first in range(0, len(self.datasets), self.columns):
            here = self.datasets[first : first + self.columns]
            panel = figure.add_subplot(grid[first // self.columns, : len(here)])
            for place in range(1, len(here)):
                panel.axvline(place * self.room, color="#e9ebee", linewidth=0.6, zorder=0.5)
            middles = [(place + 0.5) * self.room for place in range(len(here))]
            panel.set(xlim=(0, len(here) * self.room), ylim=(-0.04, 1.04), ylabel="AtteFa")
            panel.set_xticks(middles, self.names[first : first + self.columns], parse_math=False)
            panel.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])
            panel.tick_params(axis="x", length=0)
            panel.grid(visible=False, axis="x")
            yield panel, here

    def places(self, dataset: int, model: int) -> dict[str, float]:
        """Where the marks of each kind stand, for the place of a dataset in its row and of a model in its cluster."""
        widths = [ROOM[kind] for kind in self.kinds]
        ends = np.cumsum(widths) + (model - self.models / 2) * self.step + BETWEEN_MODELS / 2
        middle = (dataset + 0.5) * self.room
        return {
            kind: middle + self.stretch * float(end - width / 2)
            for kind, width, end in zip(self.kinds, widths, ends, strict=True)
        }


def _wide(line: str, size: float = 7) -> float:
    """The width of a line of text in points, as outlines have it."""
    return float(text_to_path.get_text_width_height_descent(line, FontProperties(size=size), False)[0])


def _seeds(panel: Axes, values: np.ndarray, at: float, wide: float, dot: float, colour: str, full: bool) -> None:
    """A dot for each seed; for `full` ones also their mean and, where they are enough and differ, a violin."""
    if full and len(values) >= FEWEST and np.ptp(values) > 1e-6:
        y, width = density(values, (0, 1))
        look: dict[str, Any] = {"facecolor": to_rgba(colour, 0.35), "edgecolor": colour, "linewidth": 0.7}
        panel.fill_betweenx(y, at - wide * width, at + wide * width, zorder=2, **look)
    if full and len(values) > 1:
        ends = [at - wide, at + wide]
        panel.plot(ends, [values.mean()] * 2, color=style.INK, linewidth=1.1, zorder=2.5, solid_capstyle="butt")
    dots = {"color": colour, "markersize": dot, "zorder": 3, "clip_on": False, **(FULL if full else HOLLOW)}
    panel.plot(at + side_by_side(values, wide, dot / 72), values, "o", **dots)


def side_by_side(values: np.ndarray, wide: float, size: float, apart: float | None = None) -> np.ndarray:
    """How far to the side each dot lies, at most so wide: so that they are their size apart, or less if it must be."""
    apart = apart or size
    steps = np.arange(0, max(wide - size / 2, size / 4), apart / 2)
    options = np.stack([steps, -steps], axis=1).ravel()
    order = np.argsort(values, kind="stable")
    places = np.zeros(len(values))
    for count, here in enumerate(order):
        below = order[:count]
        distances = np.hypot(options[:, None] - places[below], TALL * (values[here] - values[below]))
        free = (distances > 0.99 * apart).all(1)
        if not free.any():
            return side_by_side(values, wide, size, 0.8 * apart)
        places[here] = options[free.argmax()]
    for heap in np.split(order, np.flatnonzero(np.diff(values[order]) * TALL > size) + 1):
        places[heap] -= (places[heap].min() + places[heap].max()) / 2
    return places


def _attefa_keys(kinds: list[str], dot: float, several: bool) -> list[Line2D]:
    full, ring = (mark("o", style.FAINT, dot, f"a seed, epoch chosen on {split}") for split in ("dev", "test"))
    ring.set(**HOLLOW)
    mean = Line2D([], [], color=style.INK, linewidth=1.1, label="mean")
    diamond = mark("D", "black", 2.6, "published mean ± std")
    keys = {"dev": [full, mean] if several else [full], "test": [ring], "published": [diamond]}
    return [key for kind, ours in keys.items() if kind in kinds for key in ours]


def _new_figure(width: float) -> Figure:
    """A figure whose text is measured as it will be in an image; see `_fit` for its height."""
    figure = style.new_figure(width, 1)
    figure.set_dpi(style.DOTS_PER_INCH)
    return figure


def _fit(figure: Figure, height: float) -> None:
    """Leave so many inches to the panels, whatever the legend above them takes."""
    (legend,) = figure.legends
    figure.set_figheight(height + legend.get_window_extent().height / figure.dpi + 0.1)


def jsd_tvd_plane(adversary: pd.DataFrame, seeds: pd.DataFrame | None, title: str) -> Figure:
    """How far the adversaries of one dataset and model came in attention, and how far in output.

    `adversary` has rows of the table of that name; `seeds` has the columns seed, jsd and tvd, and tells how far the
    model is from itself when it is trained from another seed.
    """
    swept, one_shot = (_selected(_ran(adversary, name, PLACE)) for name in ("wiegreffe-pinter", "attefa"))
    others = swept[:0] if seeds is None else seeds.dropna(subset=PLACE)
    places = pd.concat([rows[PLACE] for rows in (swept, one_shot, others)])
    if places.empty:
        return style.sentence_figure(f"{title}: {NO_ADVERSARY}")
    curve = swept.groupby("strength")[PLACE].mean()
    mean = one_shot[PLACE].mean().to_frame().T.dropna()
    with style.theme():
        figure = _new_figure(style.ONE_COLUMN)
        panel = figure.subplots()
        jsd_axis(panel)
        panel.set(ylim=(0, axis_end(1.05 * places["tvd"], TVD_ENDS)))
        panel.set(xlabel="JSD: how different the attention is", ylabel="TVD: how different the output is")
        panel.grid(visible=False)
        _levels(panel)
        _draw(panel, swept, "o", 2.4, CURVE, alpha=0.4, markeredgewidth=0)
        _draw(panel, one_shot, "*", 4.5, ONE_SHOT, alpha=0.4, markeredgewidth=0)
        several = len(swept) > len(curve) or len(one_shot) > 1
        keys = [
            *_draw(panel, curve, "o-", 4, CURVE, linewidth=1.2, label="adversaries by λ"),
            *_draw(panel, mean, "*", 10, ONE_SHOT, markeredgecolor="white", label="AtteFa's adversary"),
            *([mark("o", "#b4b8bd", 2.4, "single seeds")] if several else []),
            *_draw(panel, others, "x", 4, style.FAINT, label="chance: other seeds"),
            Line2D([], [], **LEVEL, label="equal AtteFa"),
        ]
        add_legend(figure, title, [], keys)
        _fit(figure, 2.75)
        if len(curve):
            names = [f"{strength:g}".replace("e-0", "e-") for strength in curve.index]
            label_points(panel, curve, [f"λ = {names[0]}", *names[1:]], places)
    return figure


def _ran(adversary: pd.DataFrame, objective: str, needed: list[str]) -> pd.DataFrame:
    """The rows of an objective that have the needed numbers."""
    return adversary[(adversary["objective"] == objective) & adversary["status"].isin(DEFINED)].dropna(subset=needed)


def _selected(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per run: of its epoch chosen on the dev split or, if there is none, on the split that comes first."""
    splits = sorted(runs["selected_on"].unique(), key=lambda split: split != "dev")
    return runs[runs["selected_on"].isin(splits[:1])]


def _draw(panel: Axes, places: pd.DataFrame, marker: str, size: float, colour: str, **look: Any) -> list[Line2D]:
    """Draw places, if there are any."""
    look |= {"markersize": size, "color": colour, "zorder": 3, "clip_on": False}
    return panel.plot(places["jsd"], places["tvd"], marker, **look) if len(places) else []


def _levels(panel: Axes) -> None:
    """Lines of equal AtteFa, each with its number where it leaves the panel."""
    top = panel.get_ylim()[1]
    for level in LEVELS:
        share = min(1, top / (level * LARGEST_TVD))
        x, y = share * LARGEST_JSD, share * level * LARGEST_TVD
        panel.plot([0, x], [0, y], **LEVEL)
        look: dict[str, Any] = {"textcoords": "offset points", "fontsize": 6.5, "color": style.FAINT}
        number = f"{level:g}".lstrip("0")
        if share == 1:
            panel.annotate(number, (1, y), xycoords=("axes fraction", "data"), xytext=(3, 0), va="center", **look)
        else:
            panel.annotate(number, (x, 1), xycoords=("data", "axes fraction"), xytext=(0, 2), ha="center", **look)


def label_points(panel: Axes, curve: pd.DataFrame, labels: list[str], marks: pd.DataFrame) -> None:
    """Name the points of a curve beside them: inside the panel, on no other label, and on as little ink as can be.

    Points that lie on each other have one label with all their names.
    """
    figure = cast(Figure, panel.get_figure(root=True))
    figure.draw_without_rendering()
    # In points, as they are laid out now; labels take no part in the layout.
    to_points = panel.transData + Affine2D().scale(72 / figure.dpi)
    along = to_points.transform(curve[PLACE])
    runs = np.split(np.arange(len(along)), np.flatnonzero(np.linalg.norm(np.diff(along, axis=0), axis=1) > NEAR) + 1)
    words = [", ".join(labels[number] for number in run) for run in runs]
    points = np.array([along[run].mean(0) for run in runs])
    drawn = [np.linspace(one, other, 24) for one, other in pairwise(along)]
    ink = np.concatenate([along, to_points.transform(marks[PLACE]), *drawn])
    (left, bottom), (_, top) = 72 / figure.dpi * panel.bbox.get_points()
    inside = np.array([(left, bottom), (to_points.transform((LARGEST_JSD, 0))[0], top)])
    boxes = np.full((len(words), 2, 2), np.nan)
    # Each in turn takes the best place that the others leave, and again once all have one.
    for number in [*range(len(words))] * ROUNDS:
        half = np.array([_wide(words[number], LABEL) / 2 + 1, LABEL / 2 + 0.5])
        rest, taken = (np.delete(values, number, axis=0) for values in (points, boxes))
        boxes[number] = _best_place(points[number], half, rest, taken, ink, inside)
    for word, point, box in zip(words, points, boxes, strict=True):
        panel.annotate(
            word,
            tuple(to_points.inverted().transform(point)),
            xytext=box.mean(0) - point,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=LABEL,
            color=CURVE,
            arrowprops={"arrowstyle": "-", "color": CURVE, "linewidth": 0.4, "shrinkA": 0, "shrinkB": 2},
            path_effects=[withStroke(linewidth=1.5, foreground="white")],
            in_layout=False,
            zorder=5,
        )


def _best_place(
    point: np.ndarray, half: np.ndarray, rest: np.ndarray, taken: np.ndarray, ink: np.ndarray, inside: np.ndarray
) -> np.ndarray:
    """The lower left and the upper right corner of a point's label, half of which is this wide and high."""
    centres = (point + (RADII[:, None, None] + half) * DIRECTIONS).reshape(-1, 2)
    low, high = centres - half, centres + half
    outside = ((low < inside[0]) | (high > inside[1])).any(1)
    on_labels = ((low[:, None] < taken[:, 1]) & (high[:, None] > taken[:, 0])).all(2).sum(1)
    on_ink = ((low[:, None] < ink) & (ink < high[:, None])).all(2).sum(1)
    # A leader that passes another point or label names the wrong one, and so does a label that is nearer to another.
    leaders = point + np.linspace(0, 1, 12)[:, None, None] * (centres - point)
    passes = (np.linalg.norm(leaders[..., None, :] - rest, axis=-1) < 3).any(0).sum(1)
    crosses = ((taken[:, 0] < leaders[..., None, :]) & (leaders[..., None, :] < taken[:, 1])).all(-1).any(0).sum(1)
    nearer = np.linalg.norm(centres[:, None] - rest, axis=-1) < np.linalg.norm(centres - point, axis=-1)[:, None]
    misled = passes + crosses + nearer.sum(1)
    cost = 1000 * (outside + on_labels) + 2 * on_ink + 3 * misled + np.repeat(RADII, len(DIRECTIONS)) / 4
    best = cost.argmin()
    return np.array([low[best], high[best]])


def seed_variance(scores: pd.DataFrame, classes: list[str], title: str) -> Figure:
    """How far the attention and output of a model are from those of other seeds, text by text.

    `scores` has rows of the table `seed_variance_scores`, of one dataset and model and all other seeds.
    """
    texts = scores.groupby(["base_seed", "split", "instance"], observed=True).agg(
        {"predicted_class": "first", "max_attention": "first", "jsd": "median", "tvd": "mean"}
    )
    texts = with_bins(texts.reset_index(names=["seed", "split", "instance"]), "jsd")
    if texts.empty:
        return style.sentence_figure(f"{title}: {NO_TEXTS}")
    texts["change"] = 2 * texts["tvd"]
    groups = groups_of(texts, classes)
    others = scores["seed"].nunique()
    with style.theme():
        figure = _new_figure(style.TWO_COLUMNS)
        left, right = figure.subplots(1, 2)
        draw_violins(left, groups, (0, LARGEST_JSD))
        count_texts(left, groups)
        left.set_ylabel(LARGEST_WEIGHT)
        _cloud(right, groups)
        right.set(ylim=(0, axis_end(texts["change"])), ylabel=f"{'mean ' if others > 1 else ''}Δ output, ½ Σ |Δp|")
        for panel in (left, right):
            jsd_axis(panel)
            panel.set_xlabel(f"median JSD from {others} other seeds" if others > 1 else "JSD from another seed")
        add_legend(figure, title, groups, violin_keys(groups))
        _fit(figure, 0.75 + violins_height(groups))
    return figure


def _cloud(panel: Axes, groups: list[Group]) -> None:
    """A dot for each text; in random order, so that no class hides another."""
    dots = pd.concat([group.rows.assign(colour=group.colour) for group in groups]).sample(frac=1, random_state=0)
    many = len(dots) > MOST_SHAPES
    panel.scatter(
        dots["value"],
        dots["change"],
        s=3 if many else 9,
        c=dots["colour"],
        alpha=max(0.12, min(0.7, 20 / len(dots) ** 0.5)),
        linewidths=0,
        rasterized=many,
        clip_on=False,
        zorder=2,
    )


@figure(
    "seed-variance",
    reads=["scores:seed_variance", "datasets:seed_variance"],
    cells="seed_variance",
    per=["dataset", "model"],
    page="adversaries",
    experiment="seed variance",
    order=100,
    caption=(
        "How far other seeds alone move attention, text by text: median JSD by the largest weight that a word"
        " had (left), and against the change in output that comes with it (right). 0 is the same attention, "
        "ln 2 attention on other words altogether."
    ),
)
def draw_seed_variance(drawing: Drawing) -> Figure:
    """How far other seeds alone move attention."""
    return seed_variance(*read_scores(drawing, "seed_variance", SEED_VARIANCE_SCORES, VARIANCES), drawing.title)


@figure(
    "attefa-violins",
    reads=["adversary", "reproduction"],
    params=["order"],
    page="adversaries",
    experiment="adversarial models",
    order=150,
    caption=(
        "AtteFa by dataset and base model, a dot for each seed of the adversary: full where dev chose the "
        "epoch, hollow where test did; diamonds are published. Near 0 other attention gives the same output, "
        "near 1 it does not."
    ),
)
def draw_attefa(drawing: Drawing) -> Figure:
    """AtteFa of all datasets and base models, in the order of the study."""
    order = {name: place for place, name in enumerate(drawing.facts["order"])}
    frame = drawing.frame(ADVERSARY)
    frame = frame.sort_values(["dataset", "model"], key=lambda column: column.astype(str).map(order), kind="stable")
    # The published scores that ours are judged by; they say nothing about data that were made otherwise.
    reproduction = drawing.any_frame("reproduction")
    published = reproduction[(reproduction["metric"] == "AtteFa") & reproduction["within"].notna()]
    published = published.rename(columns={"published": "value", "published_spread": "std"})
    return attefa_violins(by_base_seed(frame), published)


@figure(
    "jsd-tvd-plane",
    reads=["adversary", "seed_variance?"],
    cells="adversaries",
    per=["dataset", "model"],
    page="adversaries",
    experiment="adversarial models",
    order=90,
    caption=(
        "How different the attention of adversaries is from their base model’s (JSD, to the right) and how "
        "different their output is (TVD, upwards): a curve by the strength λ of Wiegreffe & Pinter’s "
        "objective, a star for AtteFa’s, crosses for the base model from other seeds. Low and far right other"
        " attention gives the same output; along each straight line AtteFa is the same."
    ),
)
def draw_plane(drawing: Drawing) -> Figure:
    """Adversaries of the first base seed, beside other seeds of the base model."""
    rows, chance = drawing.rows(ADVERSARY), None
    # Adversaries of another seed's model are not of this one.
    first = rows["base_seed"].min()
    if SEED_VARIANCE.name in drawing:
        seeds = drawing.rows(SEED_VARIANCE)
        chance = seeds[(seeds["max_attention_bin"] == EVERY) & (seeds["base_seed"] == first)]
        chance = chance.rename(columns={"jsd_mean": "jsd", "tvd_mean": "tvd"})
    title = drawing.title + (f", seed {first}" if rows["base_seed"].nunique() > 1 else "")
    return jsd_tvd_plane(rows[rows["base_seed"] == first], chance, title)
