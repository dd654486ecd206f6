"""What happens to the output when attention is replaced (Jain & Wallace 2019, Figures 6 to 8).

Every function takes one row per seed and text of one dataset and model, with columns of the table `permutation_scores`
or `adversaries`, all seeds together.
"""

from collections.abc import Sequence
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from scipy.stats import gaussian_kde

from plumbline.figures import style
from plumbline.figures.classes import Group, add_legend, groups_of
from plumbline.figures.drawing import Drawing
from plumbline.figures.intervals import interval
from plumbline.protocols.adversary.table import LARGEST_JSD
from plumbline.protocols.attention.bins import BINS, bin_of
from plumbline.protocols.attention.schemas import ADVERSARIES, PERMUTATION_SCORES
from plumbline.registry import figure
from plumbline.store import TableSchema, read_table

# The columns that these figures read, in the order of the tables.
CHANGES = ["seed", "split", "instance", "predicted_class", "max_attention", "median_change"]
DIVERGENCES = ["seed", "split", "instance", "predicted_class", "length", "epsilon", "max_attention", "feasible", "jsd"]

JSD_BINS = np.linspace(0, 0.7, 41)
JSD_TICKS = {0: "0", 0.2: ".2", 0.4: ".4", 0.6: ".6", LARGEST_JSD: "ln 2"}
# Where an axis of changes may end: the first that holds all.
ENDS = (0.25, 0.5, 0.75, 1.0)
# With fewer texts than this their places are drawn, not a density.
FEWEST = 5
# Places at which an outline is computed: enough to look smooth, few enough for a page of many figures.
PLACES = 48
WEIGHT = "largest weight"
DIVERGENCE = "JSD between the attention and its farthest adversary"
NO_TEXTS = "No text was scored here."


class Half(NamedTuple):
    """Where a violin lies: the line it grows from, and how far it may go to one side and the other."""

    line: float
    up: float
    down: float


def permutation_violins(changes: pd.DataFrame, classes: list[str], title: str) -> Figure:
    """Violins of each text's median change in output under permuted attention, by its largest weight."""
    changes = known(changes, "median_change")
    if changes.empty:
        return style.sentence_figure(f"{title}: {NO_TEXTS}")
    groups = groups_of(changes, classes)
    with style.theme():
        figure = style.new_figure(style.ONE_COLUMN, 1.35 + height_of(groups))
        panel = figure.subplots()
        violins(panel, groups, (0, 1))
        panel.set(xlim=(0, end_of(changes["value"])), xlabel="median change in output, ½ Σ |Δp|", ylabel=WEIGHT)
        count_texts(panel, groups)
        add_legend(figure, title, groups, violin_keys(groups))
    return figure


def jsd_violins(divergences: pd.DataFrame, classes: list[str], title: str) -> Figure:
    """Violins of how far the best adversary is from the attention, by the text's largest weight, for each epsilon."""
    divergences = known(divergences, "jsd")
    if divergences.empty:
        return style.sentence_figure(f"{title}: {NO_TEXTS}")
    each = {epsilon: groups_of(rows, classes) for epsilon, rows in by_epsilon(divergences).items()}
    # Every epsilon has the same texts.
    groups = next(iter(each.values()))
    with style.theme():
        figure, panels = _panels(len(each), height_of(groups) + 0.25, 1.1)
        for panel, (epsilon, ours) in zip(panels, each.items(), strict=True):
            violins(panel, ours, (0, LARGEST_JSD))
            _epsilon_axis(panel, epsilon, ours)
        count_texts(panels[-1], groups)
        figure.supxlabel(DIVERGENCE, fontsize=8)
        figure.supylabel(WEIGHT, fontsize=8)
        add_legend(figure, title, groups, violin_keys(groups))
    return figure


def jsd_histogram(divergences: pd.DataFrame, classes: list[str], title: str) -> Figure:
    """Histograms of how far the best adversary is from the attention, by predicted class, for each epsilon.

    Each class sums to 1. A triangle marks a class's mean, its whisker the 95 % interval over texts, dots its seeds.
    """
    divergences = known(divergences, "jsd")
    if divergences.empty:
        return style.sentence_figure(f"{title}: {NO_TEXTS}")
    each = {epsilon: groups_of(rows, classes) for epsilon, rows in by_epsilon(divergences).items()}
    tallest = max(float(bin_shares(group.rows["value"]).max()) for groups in each.values() for group in groups)
    with style.theme():
        figure, panels = _panels(len(each), 1.75, 1.05)
        for panel, (epsilon, groups) in zip(panels, each.items(), strict=True):
            for group in groups:
                panel.add_patch(_bars(bin_shares(group.rows["value"]), group.colour))
            _epsilon_axis(panel, epsilon, groups)
            _mark_means(panel, groups, tallest)
        figure.supxlabel(DIVERGENCE, fontsize=8)
        figure.supylabel("share of texts", fontsize=8)
        keys = [Line2D([], [], color=style.FAINT, marker="v", markersize=4.5, label="mean, 95 % interval over texts")]
        seeds = divergences["seed"].nunique()
        if seeds > 1:
            keys.append(mark(".", style.INK, 4, f"each of {seeds} seeds"))
        add_legend(figure, title, groups, keys)
    return figure


def by_epsilon(divergences: pd.DataFrame) -> dict[float, pd.DataFrame]:
    """The rows of each epsilon, the smallest first."""
    epsilons = sorted(divergences["epsilon"].unique())
    return {epsilon: divergences[divergences["epsilon"] == epsilon] for epsilon in epsilons}


def bin_shares(values: pd.Series) -> np.ndarray:
    """The share of values in each bin of JSD [40]; they sum to 1."""
    return np.histogram(values.clip(0, JSD_BINS[-1]), JSD_BINS)[0] / len(values)


def known(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """The rows that have a number in this column, as `value`, and the bin of their largest weight, as `bin`."""
    rows = frame.dropna(subset=[column, "max_attention"])
    return rows.assign(value=rows[column], bin=bin_of(rows["max_attention"]))


def end_of(values: pd.Series, ends: Sequence[float] = ENDS) -> float:
    """Where an axis of these values ends."""
    return next((end for end in ends if values.max() <= end), ends[-1])


def height_of(groups: list[Group]) -> float:
    """Inches that the bins of a panel of violins take."""
    return len(BINS) * (0.5 if len(groups) < 3 else 0.66)


def _panels(count: int, height: float, more: float) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels of this height in inches, and `more` inches for all together."""
    columns = min(3, count)
    rows = ceil(count / columns)
    figure = style.new_figure(style.ONE_COLUMN if columns == 1 else style.TWO_COLUMNS, more + height * rows)
    figure.set_layout_engine("constrained", wspace=0.05)
    grid = list(figure.subplots(rows, columns, sharey=True, squeeze=False).flat)
    for panel in grid[count:]:
        panel.set_visible(False)
    return figure, grid[:count]


def jsd_axis(panel: Axes) -> None:
    """An axis of divergences, with their maximum marked."""
    panel.set(xlim=(0, JSD_BINS[-1]), xticks=list(JSD_TICKS), xticklabels=list(JSD_TICKS.values()))
    panel.axvline(LARGEST_JSD, color=style.FAINT, linewidth=0.8, linestyle=(0, (2, 2)), zorder=0.9)
    panel.grid(visible=False, axis="x")


def _epsilon_axis(panel: Axes, epsilon: float, groups: list[Group]) -> None:
    jsd_axis(panel)
    panel.set_title(f"ε = {epsilon:g}", loc="left", pad=5)
    found = pd.concat([group.rows["feasible"] for group in groups]) > 0
    panel.set_title(f"{percent(float(found.mean()))} feasible", loc="right", pad=5, fontsize=7, color=style.FAINT)


def percent(share: float) -> str:
    """A share as a whole percentage, in which only none is 0 and only all is 100."""
    whole = round(100 * share)
    if 0 < share < 1 and whole in (0, 100):
        return "> 99 %" if whole else "< 1 %"
    return f"{whole} %"


def _bars(heights: np.ndarray, colour: str) -> PathPatch:
    """All bars of a histogram as one shape, which takes little room in a file."""
    edges = zip(JSD_BINS, JSD_BINS[1:], heights, strict=False)
    bars = [Path([(a, 0), (a, h), (b, h), (b, 0), (a, 0)], closed=True) for a, b, h in edges if h]
    return PathPatch(Path.make_compound_path(*bars), facecolor=colour, alpha=0.6, edgecolor="white", linewidth=0.2)


def _mark_means(panel: Axes, groups: list[Group], tallest: float) -> None:
    """Above the bars, one line per class: its mean, the interval of the mean, and the mean of each seed."""
    step = 0.09 * tallest
    panel.set_ylim(0, tallest)
    panel.locator_params(axis="y", nbins=6)
    ticks = [tick for tick in panel.get_yticks() if tick <= tallest]
    panel.set(ylim=(0, tallest + step * (len(groups) + 0.9)), yticks=ticks)
    for line, group in enumerate(groups, start=1):
        mean, half = interval(group.rows)
        height = tallest + step * line
        marks: dict[str, Any] = {"color": group.colour, "markersize": 4.5, "linewidth": 1.2, "clip_on": False}
        panel.errorbar(mean, height, xerr=half, fmt="v", zorder=3, **marks)
        seeds = group.rows.groupby("seed")["value"].mean()
        if len(seeds) > 1:
            panel.plot(seeds, [height] * len(seeds), ".", color=style.INK, markersize=2.5, zorder=4, clip_on=False)


def halves(bin_: int, count: int) -> list[Half]:
    """Where the violins of `count` classes lie in a bin: two share a line, one above and one below it."""
    if count == 2:
        return [Half(bin_ - 0.02, 0.4, 0), Half(bin_ + 0.02, 0, 0.4)]
    room = 0.84 / count
    lines = [bin_ - 0.42 + room * (place + 0.5) for place in range(count)]
    return [Half(line, 0.46 * room, 0.46 * room) for line in lines]


def violins(panel: Axes, groups: list[Group], bounds: tuple[float, float]) -> None:
    """Violins of `value` by bin of the largest weight and by class, between the bounds that a value has."""
    for place, bin_ in enumerate(BINS):
        if place:
            panel.axhline(place - 0.5, color="#e9ebee", linewidth=0.6, zorder=0.5)
        for group, half in zip(groups, halves(place, len(groups)), strict=True):
            values = group.rows.loc[group.rows["bin"] == bin_, "value"].to_numpy()
            _violin(panel, values, half, group.colour, bounds)
    panel.set(ylim=(len(BINS) - 0.5, -0.5), yticks=range(len(BINS)), yticklabels=BINS)
    panel.tick_params(axis="y", length=0)
    panel.grid(visible=False, axis="y")


def _violin(panel: Axes, values: np.ndarray, half: Half, colour: str, bounds: tuple[float, float]) -> None:
    """A density with its quartiles; the single values of few texts; a line where all texts have the same."""
    middle = half.line + (half.down - half.up) / 2
    if not len(values):
        return
    if len(values) < FEWEST:
        panel.plot(
            values, [middle] * len(values), "o", color=colour, alpha=0.8, markersize=3.2, zorder=3, clip_on=False
        )
        return
    if np.ptp(values) < 1e-6:
        ends = [half.line - half.up, half.line + half.down]
        panel.plot([values[0]] * 2, ends, color=colour, linewidth=2.2, zorder=3, clip_on=False, solid_capstyle="butt")
        return
    x, width = density(values, bounds)
    panel.fill(*_outline(x, width, half), facecolor=to_rgba(colour, 0.6), edgecolor=colour, linewidth=0.9, zorder=2)
    for share in (0.25, 0.5, 0.75):
        place = float(np.quantile(values, share))
        wide = float(np.interp(place, x, width))
        look: dict[str, Any] = {"linewidth": 1.3} if share == 0.5 else {"linewidth": 0.8, "linestyle": (0, (2, 1.5))}
        ends = [half.line - half.up * wide, half.line + half.down * wide]
        panel.plot([place] * 2, ends, color=style.INK, zorder=3, solid_capstyle="butt", **look)


def _outline(x: np.ndarray, width: np.ndarray, half: Half) -> tuple[np.ndarray, np.ndarray]:
    """Places around a violin, forth above and back below; a straight side needs only its ends."""
    straight = np.zeros(2)
    above = (x, width) if half.up else (x[[0, -1]], straight)
    below = (x, width) if half.down else (x[[0, -1]], straight)
    across = np.concatenate([above[0], below[0][::-1]])
    return across, np.concatenate([half.line - half.up * above[1], half.line + half.down * below[1][::-1]])


def density(values: np.ndarray, bounds: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """A density of values between the least and the greatest of them, and nowhere else; its highest place is 1.

    What a Gaussian at a value would put beyond the bounds is folded back, since no value can be there.
    """
    x = np.linspace(values.min(), values.max(), PLACES)
    # Silverman's rule with the narrower of two spreads: the plain one blurs what has two peaks or a long tail.
    spread = float(np.std(values, ddof=1))
    middle = float(np.subtract(*np.quantile(values, (0.75, 0.25)))) / 1.34
    bandwidth = 0.9 * min(spread, middle or spread) * len(values) ** -0.2
    # No finer than the outline.
    kernel = gaussian_kde(values, max(bandwidth, np.ptp(values) / PLACES) / spread)
    low, high = bounds
    width = kernel(x) + kernel(2 * low - x) + kernel(2 * high - x)
    return x, width / width.max()


def counts_of(groups: list[Group]) -> list[list[int]]:
    """The number of rows of each bin, by class."""
    return [[int((group.rows["bin"] == bin_).sum()) for group in groups] for bin_ in BINS]


def count_texts(panel: Axes, groups: list[Group]) -> None:
    """The number of texts of each violin, right of it."""
    words = [[f"{count:,}".replace(",", "\u202f") for count in row] for row in counts_of(groups)]
    # A digit of this size is four points wide.
    right = 5 + 4 * max(len(word) for row in words for word in row)
    look: dict[str, Any] = {"textcoords": "offset points", "fontsize": 6.5, "color": style.FAINT}
    for place, row in enumerate(words):
        for word, half in zip(row, halves(place, len(groups)), strict=True):
            middle = half.line + (half.down - half.up) / 2
            panel.annotate(
                word,
                (1, middle),
                xycoords=("axes fraction", "data"),
                xytext=(right, 0),
                ha="right",
                va="center",
                **look,
            )
    several = pd.concat([group.rows["seed"] for group in groups]).nunique() > 1
    panel.annotate(
        "texts\n× seeds" if several else "texts",
        (1, 1),
        xycoords="axes fraction",
        xytext=(6, 5),
        va="bottom",
        **look,
    )


def mark(marker: str, colour: str, size: float, label: str) -> Line2D:
    """A marker in a legend."""
    return Line2D([], [], color=colour, marker=marker, markersize=size, linestyle="", label=label)


def violin_keys(groups: list[Group]) -> list[Line2D]:
    """What the lines and dots of violins are."""
    keys = [
        Line2D([], [], color=style.INK, linewidth=1.3, label="median"),
        Line2D([], [], color=style.INK, linewidth=0.8, linestyle=(0, (2, 1.5)), label="quartiles"),
    ]
    if any(0 < count < FEWEST for row in counts_of(groups) for count in row):
        keys.append(mark("o", style.FAINT, 3.2, "single texts"))
    return keys


def scores_here(drawing: Drawing, source: str, kind: TableSchema, columns: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """The scores of a protocol about this dataset and model, and the names of the dataset's classes."""
    rows = pd.concat([read_table(file.path, kind, columns).to_pandas() for file in drawing.here(f"scores:{source}")])
    return rows, drawing.classes(f"datasets:{source}")[drawing.dataset]


@figure(
    "permutation",
    reads=["scores:permutation", "datasets:permutation"],
    cells="permutation",
    per=["dataset", "model"],
    page="attention",
    experiment="permutation",
    order=50,
    caption=(
        "How much the output changes when attention is shuffled among the words, by the largest weight that a"
        " word had (Jain & Wallace’s Figure 6). Near 0 the model does not care which words the attention is "
        "on."
    ),
)
def draw_permutation(drawing: Drawing) -> Figure:
    """The change of the output when attention is shuffled."""
    return permutation_violins(*scores_here(drawing, "permutation", PERMUTATION_SCORES, CHANGES), drawing.title)


@figure(
    "jsd-histogram",
    reads=["scores:adversarial_attention", "datasets:adversarial_attention"],
    cells="adversarial_attention",
    per=["dataset", "model"],
    page="attention",
    experiment="adversarial attention",
    order=60,
    caption=(
        "How far attention can be moved while the output changes by no more than ε; JSD is 0 for the same "
        "weights and ln 2 for weights on other words altogether (Figure 7). Texts without such an adversary "
        "are not feasible and count as 0."
    ),
)
def draw_jsd_histogram(drawing: Drawing) -> Figure:
    """How far attention can be moved."""
    return jsd_histogram(*scores_here(drawing, "adversarial_attention", ADVERSARIES, DIVERGENCES), drawing.title)


@figure(
    "jsd-violins",
    reads=["scores:adversarial_attention", "datasets:adversarial_attention"],
    cells="adversarial_attention",
    per=["dataset", "model"],
    page="attention",
    experiment="adversarial attention",
    order=70,
    caption=(
        "How far attention can be moved while the output changes by no more than ε, by the largest weight "
        "that a word had (Figure 8)."
    ),
)
def draw_jsd_violins(drawing: Drawing) -> Figure:
    """How far attention can be moved, by its largest weight."""
    return jsd_violins(*scores_here(drawing, "adversarial_attention", ADVERSARIES, DIVERGENCES), drawing.title)
