"""AtteFa of adversarial models, and the variance of attention over seeds (AtteFa, Figure 2; Wiegreffe & Pinter 2019).

Attention is compared by JSD, from 0 to ln 2, and output by TVD on the studies' scale, from 0 to 0.5.
"""

from collections.abc import Iterator
from itertools import product
from math import ceil
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.figures import style
from plumbline.figures.classes import Group, add_legend, groups_of, mark
from plumbline.figures.drawing import Drawing
from plumbline.figures.layout import fit_height, text_width
from plumbline.protocols.adversary.schemas import ADVERSARY
from plumbline.protocols.adversary.table import LARGEST_JSD
from plumbline.protocols.attention import violins
from plumbline.protocols.attention.figures import NO_TEXTS, axis_end, jsd_axis, read_scores
from plumbline.protocols.attention.schemas import SEED_VARIANCE_SCORES
from plumbline.registry import figure
from plumbline.tables.chance import DEFINED

# The columns that the seed-variance figure reads, in the order of the table.
COLUMNS = ["seed", "split", "instance", "predicted_class", "base_seed", "max_attention", "jsd", "tvd"]

CELL = ["dataset", "model"]
NO_ADVERSARY = "no adversary was trained."
DIRECTION = "0: other attention gives the same output, 1: it does not"

# Widths in inches of a model's published value, its seeds, and the same seeds selected on the test split.
WIDTHS = {"published": 0.08, "dev": 0.14, "test": 0.07}
BETWEEN_MODELS = 0.05
BETWEEN_DATASETS = 0.12
BETWEEN_NAMES = 0.08
AXIS = 0.55
# With more room, marks are larger and wider apart, up to this factor.
MAX_STRETCH = 2.2
LONGEST_LINE = 16
# The height of a row of datasets in inches, and the least size of a seed's dot in points.
ROW_HEIGHT = 1.3
DOT = 2.7
FULL: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.3}
HOLLOW: dict[str, Any] = {"markerfacecolor": "white", "markeredgewidth": 0.8}
DIAMOND: dict[str, Any] = {"fmt": "D", "color": "black", "markersize": 2.6, "elinewidth": 0.8, "capsize": 1.5}

# A scatter plot of more texts than this is rasterized.
MAX_VECTOR_DOTS = 500


def label_base_seeds(adversary: pd.DataFrame) -> pd.DataFrame:
    """Rows of the table with the base seed in the name of models whose adversaries have several base seeds."""
    several = adversary.groupby(CELL, observed=True)["base_seed"].transform("nunique") > 1
    models = adversary["model"].astype(str)
    return adversary.assign(model=models.where(~several, models + ", seed " + adversary["base_seed"].astype(str)))


def attefa_violins(adversary: pd.DataFrame, published: pd.DataFrame | None) -> Figure:
    """The AtteFa score of every seed, by dataset and model, with a violin around five or more different seeds.

    `adversary` has rows of the table of that name, `published` the columns dataset, model, value and std.
    """
    runs = objective_rows(adversary, "attefa", ["attefa"])
    runs = runs[runs["selected_on"].isin(["dev", "test"])]
    if runs.empty:
        return style.sentence_figure(f"AtteFa: {NO_ADVERSARY}")
    datasets, models = ([str(name) for name in runs[column].unique()] for column in CELL)
    groups = [Group(name, style.class_colour(i), runs[runs["model"] == name]) for i, name in enumerate(models)]
    if published is None:
        published = pd.DataFrame(columns=[*CELL, "value", "std"])
    published = published[published["dataset"].isin(datasets) & published["model"].isin(models)]
    published = published.dropna(subset=["value"])
    kinds = [kind for kind in WIDTHS if kind in {*runs["selected_on"], *["published"] * len(published)}]
    clusters = Clusters(datasets, len(models), kinds)
    with style.theme():
        figure = style.new_figure(clusters.width, 1)
        for panel, row in clusters.panels(figure):
            for (column, dataset), (index, group) in product(enumerate(row), enumerate(groups)):
                x = clusters.positions(column, index)
                of_dataset = group.rows[group.rows["dataset"] == dataset]
                for kind in of_dataset["selected_on"].unique():
                    values = of_dataset.loc[of_dataset["selected_on"] == kind, "attefa"].to_numpy()
                    width = 0.46 * clusters.stretch * WIDTHS[kind]
                    _plot_seeds(panel, values, x[kind], width, clusters.dot, group.colour, kind == "dev")
                cell = (published["dataset"] == dataset) & (published["model"] == group.name)
                for value, spread in published.loc[cell, ["value", "std"]].to_numpy(float):
                    panel.errorbar(x["published"], value, spread, zorder=4, **DIAMOND)
        title = DIRECTION if clusters.width > style.ONE_COLUMN else DIRECTION.replace(", ", "\n")
        several = bool(runs.duplicated([*CELL, "selected_on"]).any())
        add_legend(figure, title, groups, _attefa_keys(kinds, clusters.dot, several))
        fit_height(figure, clusters.height)
    return figure


class Clusters:
    """The positions of models in inches: datasets in rows, the models of each side by side."""

    def __init__(self, datasets: list[str], models: int, kinds: list[str]) -> None:
        self.datasets, self.models, self.kinds = datasets, models, kinds
        self.names = ["\n".join(wrap(name, LONGEST_LINE)) for name in datasets]
        self.step = sum(WIDTHS[kind] for kind in kinds) + BETWEEN_MODELS
        marks = models * self.step - BETWEEN_MODELS
        widest = max(text_width(line, 7) / 72 for name in self.names for line in name.split("\n"))
        least = max(marks + BETWEEN_DATASETS, widest + BETWEEN_NAMES)
        self.width = style.ONE_COLUMN if len(datasets) * least < style.ONE_COLUMN - AXIS else style.TWO_COLUMNS
        self.rows = ceil(len(datasets) / max(1, int((self.width - AXIS) / least)))
        self.columns = ceil(len(datasets) / self.rows)
        self.column_width = (self.width - AXIS) / self.columns
        self.stretch = min(MAX_STRETCH, (self.column_width - BETWEEN_DATASETS) / marks)
        self.dot = DOT * self.stretch**0.5
        lines = 1 + max(name.count("\n") for name in self.names)
        self.height = self.rows * (ROW_HEIGHT + 0.15 + 0.13 * lines)

    def panels(self, figure: Figure) -> Iterator[tuple[Axes, list[str]]]:
        """A panel for each row, with its datasets."""
        grid = figure.add_gridspec(self.rows, self.columns)
        for first in range(0, len(self.datasets), self.columns):
            row = self.datasets[first : first + self.columns]
            panel = figure.add_subplot(grid[first // self.columns, : len(row)])
            for column in range(1, len(row)):
                panel.axvline(column * self.column_width, color="#e9ebee", linewidth=0.6, zorder=0.5)
            middles = [(column + 0.5) * self.column_width for column in range(len(row))]
            panel.set(xlim=(0, len(row) * self.column_width), ylim=(-0.04, 1.04), ylabel="AtteFa")
            panel.set_xticks(middles, self.names[first : first + self.columns], parse_math=False)
            panel.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])
            panel.tick_params(axis="x", length=0)
            panel.grid(visible=False, axis="x")
            yield panel, row

    def positions(self, column: int, model: int) -> dict[str, float]:
        """The x of each kind of mark, by the column of a dataset in its row and the index of a model."""
        widths = [WIDTHS[kind] for kind in self.kinds]
        ends = np.cumsum(widths) + (model - self.models / 2) * self.step + BETWEEN_MODELS / 2
        middle = (column + 0.5) * self.column_width
        return {
            kind: middle + self.stretch * float(end - width / 2)
            for kind, width, end in zip(self.kinds, widths, ends, strict=True)
        }


def _plot_seeds(panel: Axes, values: np.ndarray, x: float, width: float, dot: float, colour: str, full: bool) -> None:
    """A dot for each seed; for `full` ones also their mean and, for enough different values, a violin."""
    if full and len(values) >= violins.FEWEST and np.ptp(values) > 1e-6:
        y, height = violins.density(values, (0, 1))
        violin: dict[str, Any] = {"facecolor": to_rgba(colour, 0.35), "edgecolor": colour, "linewidth": 0.7}
        panel.fill_betweenx(y, x - width * height, x + width * height, zorder=2, **violin)
    if full and len(values) > 1:
        ends = [x - width, x + width]
        panel.plot(ends, [values.mean()] * 2, color=style.INK, linewidth=1.1, zorder=2.5, solid_capstyle="butt")
    dots = {"color": colour, "markersize": dot, "zorder": 3, "clip_on": False, **(FULL if full else HOLLOW)}
    panel.plot(x + swarm_offsets(values, width, dot / 72), values, "o", **dots)


def swarm_offsets(values: np.ndarray, width: float, size: float, spacing: float | None = None) -> np.ndarray:
    """The horizontal offset of each dot in a swarm, at most `width`: dots are their size apart, or less if needed."""
    spacing = spacing or size
    steps = np.arange(0, max(width - size / 2, size / 4), spacing / 2)
    candidates = np.stack([steps, -steps], axis=1).ravel()
    order = np.argsort(values, kind="stable")
    offsets = np.zeros(len(values))
    for count, dot in enumerate(order):
        below = order[:count]
        distances = np.hypot(candidates[:, None] - offsets[below], ROW_HEIGHT * (values[dot] - values[below]))
        free = (distances > 0.99 * spacing).all(1)
        if not free.any():
            return swarm_offsets(values, width, size, 0.8 * spacing)
        offsets[dot] = candidates[free.argmax()]
    for group in np.split(order, np.flatnonzero(np.diff(values[order]) * ROW_HEIGHT > size) + 1):
        offsets[group] -= (offsets[group].min() + offsets[group].max()) / 2
    return offsets


def _attefa_keys(kinds: list[str], dot: float, several: bool) -> list[Line2D]:
    full, ring = (mark("o", style.FAINT, dot, f"a seed, epoch chosen on {split}") for split in ("dev", "test"))
    ring.set(**HOLLOW)
    mean = Line2D([], [], color=style.INK, linewidth=1.1, label="mean")
    diamond = mark("D", "black", 2.6, "published mean ± standard deviation")
    keys = {"dev": [full, mean] if several else [full], "test": [ring], "published": [diamond]}
    return [key for kind, of_kind in keys.items() if kind in kinds for key in of_kind]


def objective_rows(adversary: pd.DataFrame, objective: str, columns: list[str]) -> pd.DataFrame:
    """The rows of an objective that have values in these columns."""
    return adversary[(adversary["objective"] == objective) & adversary["status"].isin(DEFINED)].dropna(subset=columns)


def seed_variance_figure(scores: pd.DataFrame, classes: list[str], title: str) -> Figure:
    """The distance of a model's attention and output from those of other seeds, for each text.

    `scores` has rows of the table `seed_variance_scores` for one dataset and model and all other seeds.
    """
    texts = scores.groupby(["base_seed", "split", "instance"], observed=True).agg(
        {"predicted_class": "first", "max_attention": "first", "jsd": "median", "tvd": "mean"}
    )
    texts = violins.with_bins(texts.reset_index(names=["seed", "split", "instance"]), "jsd")
    if texts.empty:
        return style.sentence_figure(f"{title}: {NO_TEXTS}")
    texts["change"] = 2 * texts["tvd"]
    groups = groups_of(texts, classes)
    others = scores["seed"].nunique()
    with style.theme():
        figure = style.new_figure(style.TWO_COLUMNS, 1)
        left, right = figure.subplots(1, 2)
        violins.draw_violins(left, groups, (0, LARGEST_JSD))
        violins.count_texts(left, groups)
        left.set_ylabel(violins.LARGEST_WEIGHT)
        _plot_texts(right, groups)
        right.set(ylim=(0, axis_end(texts["change"])), ylabel=f"{'mean ' if others > 1 else ''}change, ½ Σ |Δp|")
        for panel in (left, right):
            jsd_axis(panel)
            panel.set_xlabel(f"median JSD to {others} other seeds" if others > 1 else "JSD to another seed")
        add_legend(figure, title, groups, violins.violin_keys(groups))
        fit_height(figure, 0.75 + violins.violins_height(groups))
    return figure


def _plot_texts(panel: Axes, groups: list[Group]) -> None:
    """A dot for each text, in random order so that no class hides another."""
    dots = pd.concat([group.rows.assign(colour=group.colour) for group in groups]).sample(frac=1, random_state=0)
    many = len(dots) > MAX_VECTOR_DOTS
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
)
def draw_seed_variance(drawing: Drawing) -> Figure:
    """How much attention differs between seeds. Horizontal axis of both panels: median JSD of a text between the
    attention of a base seed and that of the other seeds: 0 is the same attention, ln 2 (dashed line) attention on
    disjoint words. Left: violins over the texts of a predicted class (colour) with median and quartiles, by the largest
    attention weight of the text. Right: a dot for each text, with its mean change in output ½ Σ |Δp| on the vertical
    axis. An adversary has found other attention only if its JSD is larger than these.
    """
    return seed_variance_figure(*read_scores(drawing, "seed_variance", SEED_VARIANCE_SCORES, COLUMNS), drawing.title)


@figure(
    "attefa-violins",
    reads=["adversary", "reproduction"],
    params=["order"],
    page="adversaries",
    experiment="adversarial models",
    order=150,
)
def draw_attefa(drawing: Drawing) -> Figure:
    """AtteFa (vertically, 0 to 1) by dataset and base model (colour): a dot for each seed of the adversary, filled if
    its epoch was chosen on the dev split, hollow if on the test split; a line at their mean and a violin of five or
    more seeds; diamonds are published means ± standard deviation. Near 0 other attention gives the same output, so
    attention is not faithful; near 1 it does not.
    """
    order = {name: i for i, name in enumerate(drawing.facts["order"])}
    frame = drawing.frame(ADVERSARY)
    frame = frame.sort_values(["dataset", "model"], key=lambda column: column.astype(str).map(order), kind="stable")
    # Only published scores that apply here: not those of data prepared differently.
    reproduction = drawing.any_frame("reproduction")
    published = reproduction[(reproduction["metric"] == "AtteFa") & reproduction["within"].notna()]
    published = published.rename(columns={"published": "value", "published_spread": "std"})
    return attefa_violins(label_base_seeds(frame), published)
