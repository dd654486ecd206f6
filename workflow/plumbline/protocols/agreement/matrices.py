"""How alike all measures of a model rank tokens, dataset beside dataset (Neely et al. 2022, Tables 1 and 2)."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure

from plumbline.figures import style
from plumbline.figures.drawing import Drawing
from plumbline.protocols.agreement.figures import NOTHING, TICKS, colour_names, compared_measures
from plumbline.protocols.agreement.schemas import AGREEMENT
from plumbline.protocols.agreement.table import RANKED, overall_taus, triangles
from plumbline.registry import figure

# The sides of a cell in inches, wide enough for a number with its spread below: of few measures and of more.
SIDES = (0.46, 0.37)
FEW = 5


def correlation_matrices(agreement: pd.DataFrame, datasets: list[str], title: str) -> Figure:
    """Mean τ of every pair of measures below the diagonal, a panel for each dataset and a row for each set of tokens.

    agreement: rows of the table `agreement` about one model. Each cell has the mean over the texts of all seeds and, in
    small print, the standard deviation over them.
    """
    taus = overall_taus(agreement)
    if taus.empty:
        return style.sentence_figure(f"{title}: {NOTHING}")
    measures = compared_measures(taus)
    tokens = [some for some in RANKED if some in set(taus["tokens"])]
    datasets = [dataset for dataset in datasets if dataset in set(taus["dataset"])]
    cell = SIDES[len(measures) > FEW]
    side = cell * (len(measures) - 1)
    # What the names of measures take to the left of the panels and, at an angle, below them; and how far those of the
    # columns reach out to the left of a panel.
    names = 0.062 * max(map(len, measures))
    over = max(0.0, *(0.045 * len(name) - cell * (place + 0.5) for place, name in enumerate(measures[:-1])))
    with style.theme():
        width = names + len(datasets) * (side + 0.25) + (len(datasets) - 1) * over + 1.1
        figure = style.new_figure(max(style.ONE_COLUMN, width), 0.6 * names + len(tokens) * (side + 0.6) + 0.7)
        figure.set_layout_engine("compressed", h_pad=0.08)
        grid = figure.subplots(len(tokens), len(datasets), sharex=True, sharey=True, squeeze=False)
        colours = sns.color_palette("vlag", as_cmap=True)
        for row, some in enumerate(tokens):
            for column, dataset in enumerate(datasets):
                here = taus[(taus["dataset"] == dataset) & (taus["tokens"] == some)]
                _triangle(grid[row, column], here, measures, colours)
                told = f"{dataset}\n{RANKED[some]}" if len(tokens) > 1 else dataset
                grid[row, column].set_title(told, loc="left", pad=5)
        bar = figure.colorbar(
            ScalarMappable(Normalize(-1, 1), colours),
            ax=grid,
            label="mean Kendall τ",
            aspect=25 * len(tokens),
            ticks=TICKS,
        )
        bar.outline.set_visible(False)
        seeds = taus["seed"].nunique()
        of = f"{seeds} seeds" if seeds > 1 else "one seed"
        figure.suptitle(f"{title}\n", x=0.02, ha="left", fontsize=9)
        figure.text(
            0.02,
            0.995 - 0.24 / figure.get_figheight(),
            f"mean and standard deviation over the texts of {of}",
            va="top",
            fontsize=7,
            color=style.FAINT,
        )
    return figure


def _triangle(panel: Axes, taus: pd.DataFrame, measures: list[str], colours: Colormap) -> None:
    """The cells below the diagonal with their numbers; a dash where there is none."""
    mean, std = triangles(taus, measures)
    rows, columns = list(mean.index), list(mean.columns)
    ground = np.ones((*mean.shape, 4))
    for row, (values, spreads) in enumerate(zip(mean.to_numpy(), std.to_numpy(), strict=True)):
        for column in range(row + 1):
            value, spread = values[column], spreads[column]
            if np.isnan(value):
                write_cell(panel, row, column, "–", 0, 6.5, style.FAINT)
                continue
            ground[row, column] = colours((value + 1) / 2)
            ink = style.ink_on(ground[row, column])
            write_cell(panel, row, column, style.signed(value), 2.2, 6.5, ink)
            if not np.isnan(spread):
                write_cell(panel, row, column, f"{spread:.2f}", -6.2, 4.5, ink)
    panel.pcolormesh(ground, edgecolor="white", linewidth=1.5)
    panel.set_aspect("equal")
    panel.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=40, ha="right", rotation_mode="anchor")
    panel.set_yticks(np.arange(len(rows)) + 0.5, rows)
    panel.grid(visible=False)
    for spine in panel.spines.values():
        spine.set_visible(False)
    colour_names(panel, rows, columns)


def write_cell(panel: Axes, row: int, column: int, text: str, raised: float, size: float, ink: str) -> None:
    """A word in the middle of a cell, or so many points above it."""
    panel.annotate(
        text,
        (column + 0.5, row + 0.5),
        (0, raised),
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=size,
        color=ink,
    )


@figure(
    "correlation-matrices",
    reads=["agreement"],
    params=["datasets"],
    cells="agreement",
    per=["model"],
    page="disagreement",
    experiment="correlation",
    order=40,
    caption=(
        "Mean Kendall τ of every pair of a model’s measures over the texts of all seeds, with the standard "
        "deviation over them in small print, dataset beside dataset (Neely et al.’s Tables 1 and 2)."
    ),
)
def draw_matrices(drawing: Drawing) -> Figure:
    """Every pair of measures, dataset beside dataset."""
    return correlation_matrices(drawing.rows(AGREEMENT), drawing.facts["datasets"], drawing.model)
