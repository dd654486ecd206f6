"""Figures of sensitivity: each criterion by the share of permuted scores, and the smallest share that it sees."""

from itertools import cycle, product
from math import ceil
from textwrap import wrap

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.figures import style
from plumbline.figures.drawing import Drawing
from plumbline.figures.layout import (
    MARKERS,
    fill_cells,
    finish,
    hide_unused,
    name_cells,
    panel_figure,
    title_above,
    write_cell,
)
from plumbline.protocols.criteria import ARROWS
from plumbline.protocols.scorecard.figures import WORDS, criterion_columns
from plumbline.protocols.sensitivity.schemas import SENSITIVITY
from plumbline.protocols.sensitivity.table import smallest_seen
from plumbline.registry import figure

# The most panels in a row, and the height of a panel and the sides of a cell in inches.
MOST, TALL = 4, 1.25
WIDE, HIGH = 0.6, 0.3
NOTHING = "no criterion scores a degraded measure"


def ladders(rows: pd.DataFrame, title: str) -> Figure:
    """A panel for each criterion: its value by the share of permuted scores, with its interval over seeds. A colour for
    each measure, a marker for each variant of the texts.

    rows: of the table `sensitivity`, for one dataset and model.
    """
    if rows.empty:
        return style.sentence_figure(f"{title}: {NOTHING}")
    rows = _by_texts(rows)
    criteria, measures, variants = (list(dict.fromkeys(rows[key])) for key in ("criterion", "measure", "variant"))
    markers = dict(zip(variants, cycle(MARKERS), strict=False))
    across = min(MOST, len(criteria))
    with style.theme():
        figure = panel_figure(style.TWO_COLUMNS * max(across, 2) / MOST)
        grid = figure.subplots(ceil(len(criteria) / across), across, sharex=True, squeeze=False)
        for panel, criterion in zip(hide_unused(grid, len(criteria)), criteria, strict=True):
            own = rows[rows["criterion"] == criterion]
            for (measure, variant), line in own.groupby(["measure", "variant"], sort=False):
                line = line.drop_duplicates("share").sort_values("share")
                reach = [line["value"] - line["ci_low"], line["ci_high"] - line["value"]]
                look = {"color": style.measure_colour(str(measure)), "marker": markers[variant]}
                panel.errorbar(line["share"], line["value"], yerr=reach, markersize=3, linewidth=1, capsize=1.5, **look)
            name = wrap(f"{criterion}\u00a0{ARROWS[own['direction'].iloc[0]]}", 22)
            panel.set_title("\n".join(name), loc="left", pad=4, fontsize=7.5, parse_math=False)
            panel.set_xticks(sorted(own["share"].unique()))
            panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}".removeprefix("0") or "0")
        keys = [Line2D([], [], color=style.measure_colour(measure), label=measure) for measure in measures]
        keys += [
            Line2D([], [], color=style.INK, linestyle="", markersize=4, marker=marker, label=variant)
            for variant, marker in markers.items()
        ]
        note = (
            "Horizontal axis: share of a text's scores that are permuted. Means over seeds with Student's 95 % "
            "intervals. ↑: higher is better, ↓: lower is better; a sensitive criterion gets worse with every step."
        )
        finish(figure, title, keys, note, TALL * len(grid))
    return figure


def _by_texts(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows whose criterion states if it is of manipulated texts and there are plain ones too."""
    rows = rows.astype(dict.fromkeys(WORDS, str))
    return rows.assign(criterion=criterion_columns(rows))


def detection(rows: pd.DataFrame, title: str) -> Figure:
    """Criteria by the number of seeds: the smallest share of permuted scores that is seen; the darker, the smaller.

    rows: of the table `sensitivity`.
    """
    shares = smallest_seen(_by_texts(rows), ["criterion"]) if len(rows) else pd.Series()
    if shares.empty:
        return style.sentence_figure(f"{title}: {NOTHING} with three or more seeds")
    cells = shares.unstack().reindex(list(dict.fromkeys(shares.index.get_level_values("criterion"))))
    with style.theme():
        names = 0.075 * max(map(len, cells.index))
        figure = style.new_figure(max(names + WIDE * len(cells.columns) + 0.4, 4.4), HIGH * len(cells) + 1.3)
        panel = figure.subplots()
        colours = sns.light_palette("#1f6f5c", as_cmap=True)
        shown, background = cells.to_numpy(dtype=np.float64), np.full((*cells.shape, 4), 1.0)
        for row, column in product(*map(range, cells.shape)):
            share = shown[row, column]
            if np.isnan(share):
                write_cell(panel, row, column, "–", 0, 7, style.FAINT)
                continue
            background[row, column] = colours(1 - share)
            write_cell(panel, row, column, f"{share:g}", 0, 7, style.ink_on(background[row, column]))
        fill_cells(panel, background)
        panel.set(xlim=(0, cells.shape[1]), ylim=(cells.shape[0], 0), xlabel="seeds")
        name_cells(panel, list(cells.index), [f"{count}" for count in cells.columns], rotation=0)
        title_above(figure, title, "with a power of 0.8 or more, mean over models and measures; –: none")
    return figure


@figure(
    "ladder",
    reads=["sensitivity"],
    cells="explained",
    per=["dataset", "model"],
    page="sensitivity",
    experiment="sensitivity",
    order=10,
)
def draw_ladders(drawing: Drawing) -> Figure:
    """Value of each criterion (panels) by the share of a measure’s scores that are permuted at random within each text
    (horizontally); 0 is the measure itself. Colours are measures, markers variants of the dataset; means over seeds
    with Student’s 95 % intervals. The arrow after a criterion shows whether higher (↑) or lower (↓) is better. A
    criterion that measures faithfulness gets worse with every step.
    """
    return ladders(drawing.rows(SENSITIVITY), drawing.title)


@figure("detection", reads=["sensitivity"], page="sensitivity", experiment="sensitivity", order=0)
def draw_detection(drawing: Drawing) -> Figure:
    """Smallest share of permuted scores that each criterion (rows) detects, by the number of seeds (columns): a
    one-sided paired Student test at 5 % finds the measure with permuted scores worse in 80 % of the sets of that many
    seeds, mean over datasets, models and measures, also for all larger shares. Smaller (darker) is better; a dash means
    that no share is detected.
    """
    return detection(drawing.frame(SENSITIVITY), "The smallest permuted share that is detected")
