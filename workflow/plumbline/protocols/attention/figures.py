"""Output under replaced attention: permutation and adversarial attention (Jain & Wallace 2019, Figures 6 to 8).

Every figure takes one row per seed and text of one dataset and model, for all seeds, with columns of the table
`permutation_scores` or `adversaries`.
"""

from collections.abc import Sequence
from math import ceil

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from plumbline.figures import style
from plumbline.figures.classes import Group, add_legend, groups_of, mark_means, mean_keys
from plumbline.figures.drawing import Drawing
from plumbline.figures.layout import hide_unused
from plumbline.protocols.adversary.table import LARGEST_JSD
from plumbline.protocols.attention import violins
from plumbline.protocols.attention.schemas import ADVERSARIES, PERMUTATION_SCORES
from plumbline.registry import figure
from plumbline.store import TableSchema, read_table

# The columns of these figures, in the order of the tables.
CHANGES = ["seed", "split", "instance", "predicted_class", "max_attention", "median_change"]
DIVERGENCES = ["seed", "split", "instance", "predicted_class", "length", "epsilon", "max_attention", "feasible", "jsd"]

JSD_BINS = np.linspace(0, 0.7, 41)
JSD_TICKS = {0: "0", 0.2: ".2", 0.4: ".4", 0.6: ".6", LARGEST_JSD: "ln 2"}
# The possible ends of an axis of changes; the first that covers all values is used.
AXIS_ENDS = (0.25, 0.5, 0.75, 1.0)
DIVERGENCE = "JSD between attention and the most different attention found"
NO_TEXTS = "no text was scored."


def permutation_violins(changes: pd.DataFrame, classes: list[str], title: str) -> Figure:
    """Violins of each text's median change in output under permuted attention, by its largest weight."""
    changes = violins.with_bins(changes, "median_change")
    if changes.empty:
        return style.sentence_figure(f"{title}: {NO_TEXTS}")
    groups = groups_of(changes, classes)
    with style.theme():
        figure = style.new_figure(style.ONE_COLUMN, 1.35 + violins.violins_height(groups))
        panel = figure.subplots()
        violins.draw_violins(panel, groups, (0, 1))
        end = axis_end(changes["value"])
        panel.set(xlim=(0, end), xlabel="median change in output, ½ Σ |Δp|", ylabel=violins.LARGEST_WEIGHT)
        violins.count_texts(panel, groups)
        add_legend(figure, title, groups, violins.violin_keys(groups))
    return figure


def jsd_violins(divergences: pd.DataFrame, classes: list[str], title: str) -> Figure:
    """Violins of the JSD between attention and best adversary, by the text's largest weight, for each epsilon."""
    by_epsilon = groups_by_epsilon(divergences, classes)
    if not by_epsilon:
        return style.sentence_figure(f"{title}: {NO_TEXTS}")
    # Every epsilon has the same texts.
    groups = next(iter(by_epsilon.values()))
    with style.theme():
        figure, panels = _epsilon_panels(by_epsilon, violins.violins_height(groups) + 0.25, 1.1)
        for panel, epsilon_groups in zip(panels, by_epsilon.values(), strict=True):
            violins.draw_violins(panel, epsilon_groups, (0, LARGEST_JSD))
            jsd_axis(panel)
        violins.count_texts(panels[-1], groups)
        figure.supylabel(violins.LARGEST_WEIGHT, fontsize=8)
        add_legend(figure, title, groups, violins.violin_keys(groups))
    return figure


def jsd_histogram(divergences: pd.DataFrame, classes: list[str], title: str) -> Figure:
    """Histograms of the JSD between attention and best adversary, by predicted class, for each epsilon.

    Each class sums to 1. A triangle marks a class's mean, its whisker the 95 % interval over texts, dots its seeds.
    """
    by_epsilon = groups_by_epsilon(divergences, classes)
    if not by_epsilon:
        return style.sentence_figure(f"{title}: {NO_TEXTS}")
    tallest = max(float(bin_shares(group.rows["value"]).max()) for groups in by_epsilon.values() for group in groups)
    with style.theme():
        figure, panels = _epsilon_panels(by_epsilon, 1.75, 1.05)
        for panel, groups in zip(panels, by_epsilon.values(), strict=True):
            for group in groups:
                panel.add_patch(_bars(bin_shares(group.rows["value"]), group.colour))
            jsd_axis(panel)
            panel.set_ylim(0, tallest)
            panel.locator_params(axis="y", nbins=6)
            mark_means(panel, groups, tallest)
        figure.supylabel("share of texts", fontsize=8)
        add_legend(figure, title, groups, mean_keys(violins.with_bins(divergences, "jsd")["seed"].nunique()))
    return figure


def groups_by_epsilon(divergences: pd.DataFrame, classes: list[str]) -> dict[float, list[Group]]:
    """The rows with a JSD by epsilon, the smallest first, and by predicted class."""
    rows = violins.with_bins(divergences, "jsd")
    epsilons = sorted(rows["epsilon"].unique())
    return {epsilon: groups_of(rows[rows["epsilon"] == epsilon], classes) for epsilon in epsilons}


def bin_shares(values: pd.Series) -> np.ndarray:
    """The share of values in each bin of JSD [40]; they sum to 1."""
    return np.histogram(values.clip(0, JSD_BINS[-1]), JSD_BINS)[0] / len(values)


def axis_end(values: pd.Series, ends: Sequence[float] = AXIS_ENDS) -> float:
    """The end of an axis of these values."""
    return next((end for end in ends if values.max() <= end), ends[-1])


def _epsilon_panels(by_epsilon: dict[float, list[Group]], height: float, margin: float) -> tuple[Figure, list[Axes]]:
    """A figure with one panel of this height in inches per epsilon, and `margin` inches for labels and legend."""
    count = len(by_epsilon)
    columns = min(3, count)
    rows = ceil(count / columns)
    figure = style.new_figure(style.ONE_COLUMN if columns == 1 else style.TWO_COLUMNS, margin + height * rows)
    figure.set_layout_engine("constrained", wspace=0.05)
    panels = hide_unused(figure.subplots(rows, columns, sharey=True, squeeze=False), count)
    for panel, (epsilon, groups) in zip(panels, by_epsilon.items(), strict=True):
        panel.set_title(f"ε = {epsilon:g}", loc="left", pad=5)
        feasible = float((pd.concat([group.rows["feasible"] for group in groups]) > 0).mean())
        panel.set_title(f"{percent(feasible)} feasible", loc="right", pad=5, fontsize=7, color=style.FAINT)
    figure.supxlabel(DIVERGENCE, fontsize=8)
    return figure, panels


def jsd_axis(panel: Axes) -> None:
    """An axis of JSD with its maximum marked."""
    panel.set(xlim=(0, JSD_BINS[-1]), xticks=list(JSD_TICKS), xticklabels=list(JSD_TICKS.values()))
    panel.axvline(LARGEST_JSD, color=style.FAINT, linewidth=0.8, linestyle=(0, (2, 2)), zorder=0.9)
    panel.grid(visible=False, axis="x")


def percent(share: float) -> str:
    """A share as a whole percentage; only exactly none is 0 % and only exactly all is 100 %."""
    whole = round(100 * share)
    if 0 < share < 1 and whole in (0, 100):
        return "> 99 %" if whole else "< 1 %"
    return f"{whole} %"


def _bars(heights: np.ndarray, colour: str) -> PathPatch:
    """All bars of a histogram as one path, which keeps files small."""
    edges = zip(JSD_BINS, JSD_BINS[1:], heights, strict=False)
    bars = [Path([(a, 0), (a, h), (b, h), (b, 0), (a, 0)], closed=True) for a, b, h in edges if h]
    return PathPatch(Path.make_compound_path(*bars), facecolor=colour, alpha=0.6, edgecolor="white", linewidth=0.2)


def read_scores(
    drawing: Drawing, protocol: str, schema: TableSchema, columns: list[str]
) -> tuple[pd.DataFrame, list[str]]:
    """A protocol's scores for the figure's dataset and model, and the names of the dataset's classes."""
    files = drawing.here(f"scores:{protocol}")
    rows = pd.concat([read_table(file.path, schema, columns).to_pandas() for file in files])
    return rows, drawing.classes(f"datasets:{protocol}")[drawing.dataset]


@figure(
    "permutation",
    reads=["scores:permutation", "datasets:permutation"],
    cells="permutation",
    per=["dataset", "model"],
    page="attention",
    experiment="permutation",
    order=50,
)
def draw_permutation(drawing: Drawing) -> Figure:
    """Change in output when the attention weights of a text are permuted (Jain & Wallace’s Figure 6). Horizontal axis:
    median of ½ Σ |Δp| over permutations, from 0 (no change) to 1. Vertical axis: largest attention weight of the text.
    Violins are distributions over the texts of a predicted class (colour) with median and quartiles; counts of texts
    are on the right. Near 0 the output does not depend on which words have the attention, which counts most for large
    weights.
    """
    return permutation_violins(*read_scores(drawing, "permutation", PERMUTATION_SCORES, CHANGES), drawing.title)


@figure(
    "jsd-histogram",
    reads=["scores:adversarial_attention", "datasets:adversarial_attention"],
    cells="adversarial_attention",
    per=["dataset", "model"],
    page="attention",
    experiment="adversarial attention",
    order=60,
)
def draw_jsd_histogram(drawing: Drawing) -> Figure:
    """How different attention can be while the output changes by at most ε (panels; Jain & Wallace’s Figure 7).
    Horizontal axis: JSD between attention and the most different attention found: 0 for the same weights, ln 2 (dashed
    line) for weights on disjoint words. Vertical axis: share of the texts of a predicted class (colour), for all seeds
    together. Triangles are class means with 95 % intervals over texts, dots the means of single seeds. Towards the
    right, very different attention gives the same output. “Feasible”: texts whose search ended within ε; with `slack:
    published`, the others count as 0.
    """
    return jsd_histogram(*read_scores(drawing, "adversarial_attention", ADVERSARIES, DIVERGENCES), drawing.title)


@figure(
    "jsd-violins",
    reads=["scores:adversarial_attention", "datasets:adversarial_attention"],
    cells="adversarial_attention",
    per=["dataset", "model"],
    page="attention",
    experiment="adversarial attention",
    order=70,
)
def draw_jsd_violins(drawing: Drawing) -> Figure:
    """How different attention can be while the output changes by at most ε (panels; Jain & Wallace’s Figure 8).
    Horizontal axis: JSD between attention and the most different attention found, from 0 for the same weights to ln 2
    (dashed line) for weights on disjoint words. Vertical axis: largest attention weight of the text. Violins are
    distributions over the texts of a predicted class (colour) with median and quartiles; counts of texts are on the
    right. Towards the right, very different attention gives the same output.
    """
    return jsd_violins(*read_scores(drawing, "adversarial_attention", ADVERSARIES, DIVERGENCES), drawing.title)
