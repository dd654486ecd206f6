"""Mean Kendall τ of all pairs of a model's measures, one panel per dataset (Neely et al. 2022, Tables 1 and 2)."""

from itertools import product

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure

from plumbline.figures import style
from plumbline.figures.drawing import Drawing
from plumbline.figures.layout import add_colour_bar, fill_cells, name_cells, title_above, write_cell
from plumbline.protocols.agreement.figures import NO_TAU, TICKS, colour_names, compared_measures
from plumbline.protocols.agreement.schemas import AGREEMENT
from plumbline.protocols.agreement.selections import TOKEN_LABELS, overall_taus, triangles
from plumbline.registry import figure

# Side of a cell in inches, for at most `FEW` measures and for more.
SIDES = (0.46, 0.37)
FEW = 5


def correlation_matrices(agreement: pd.DataFrame, datasets: list[str], title: str) -> Figure:
    """Mean τ of every pair of measures below the diagonal, one column per dataset and one row per set of tokens.

    agreement: rows of the table `agreement` of one model. Each cell has the mean over the texts of all seeds and, in
    small print, the standard deviation over them.
    """
    taus = overall_taus(agreement)
    if taus.empty:
        return style.sentence_figure(f"{title}: {NO_TAU}")
    measures = compared_measures(taus)
    token_sets = [tokens for tokens in TOKEN_LABELS if tokens in set(taus["tokens"])]
    datasets = [dataset for dataset in datasets if dataset in set(taus["dataset"])]
    cell = SIDES[len(measures) > FEW]
    side = cell * (len(measures) - 1)
    # Inches of the measure names left of the panels (below them they are rotated), and how far the rotated column
    # names extend to the left of a panel.
    names = 0.062 * max(map(len, measures))
    overhang = max(0.0, *(0.045 * len(name) - cell * (i + 0.5) for i, name in enumerate(measures[:-1])))
    with style.theme():
        width = names + len(datasets) * (side + 0.25) + (len(datasets) - 1) * overhang + 1.1
        figure = style.new_figure(max(style.ONE_COLUMN, width), 0.6 * names + len(token_sets) * (side + 0.6) + 0.7)
        figure.set_layout_engine("compressed", h_pad=0.08)
        grid = figure.subplots(len(token_sets), len(datasets), sharex=True, sharey=True, squeeze=False)
        colours = sns.color_palette("vlag", as_cmap=True)
        for panel, (tokens, dataset) in zip(grid.flat, product(token_sets, datasets), strict=True):
            _triangle(panel, taus[(taus["dataset"] == dataset) & (taus["tokens"] == tokens)], measures, colours)
            label = f"{dataset}\n{TOKEN_LABELS[tokens]}" if len(token_sets) > 1 else dataset
            panel.set_title(label, loc="left", pad=5)
        aspect = 25 * len(token_sets)
        add_colour_bar(figure, grid, colours, -1, label="mean Kendall τ", aspect=aspect, ticks=TICKS)
        seeds = taus["seed"].nunique()
        of_seeds = f"{seeds} seeds" if seeds > 1 else "one seed"
        title_above(figure, title, f"mean and standard deviation over the texts of {of_seeds}")
    return figure


def _triangle(panel: Axes, taus: pd.DataFrame, measures: list[str], colours: Colormap) -> None:
    """The cells below the diagonal with their numbers; a dash for a missing number."""
    mean, std = triangles(taus, measures)
    rows, columns = list(mean.index), list(mean.columns)
    background = np.ones((*mean.shape, 4))
    for row, (means, stds) in enumerate(zip(mean.to_numpy(), std.to_numpy(), strict=True)):
        for column in range(row + 1):
            if np.isnan(means[column]):
                write_cell(panel, row, column, "–", 0, 6.5, style.FAINT)
                continue
            background[row, column] = colours((means[column] + 1) / 2)
            ink = style.ink_on(background[row, column])
            write_cell(panel, row, column, style.signed(means[column]), 2.2, 6.5, ink)
            if not np.isnan(stds[column]):
                write_cell(panel, row, column, f"{stds[column]:.2f}", -6.2, 4.5, ink)
    fill_cells(panel, background)
    panel.set_aspect("equal")
    name_cells(panel, rows, columns)
    colour_names(panel, rows, columns)


@figure(
    "correlation-matrices",
    reads=["agreement"],
    params=["datasets"],
    cells="agreement",
    per=["model"],
    page="disagreement",
    experiment="correlation",
    order=40,
)
def draw_matrices(drawing: Drawing) -> Figure:
    """Kendall τ between every two measures of a model (rows and columns), one panel per dataset (Neely et al.’s Tables
    1 and 2): mean over the texts of all seeds and, in small print, the standard deviation over these texts. 1 is the
    same order of the words, 0 unrelated orders, −1 opposite orders.
    """
    return correlation_matrices(drawing.rows(AGREEMENT), drawing.facts["datasets"], drawing.title)
