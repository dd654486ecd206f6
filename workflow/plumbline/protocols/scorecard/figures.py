"""Heatmaps of the scorecard: every measure by every criterion, and the agreement between criteria."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure

from plumbline.config.variants import PLAIN
from plumbline.figures import style
from plumbline.figures.drawing import Drawing
from plumbline.figures.layout import add_colour_bar, fill_cells, name_cells, title_above, write_cell
from plumbline.protocols.agreement.figures import TICKS
from plumbline.protocols.criteria import ARROWS
from plumbline.protocols.scorecard.meta import relative_ranks
from plumbline.protocols.scorecard.schemas import META_EVALUATION, SCORECARD, TRUST
from plumbline.protocols.scorecard.trust import sign_of
from plumbline.registry import figure

# The sides of a cell in inches.
WIDE, HIGH = 0.78, 0.36
# How strong the colour is of a value without an interval.
PALE = 0.35
NOTHING = "no protocol of this study scores a measure"
# The most reasons that are given where there is nothing to draw.
MOST_REASONS = 2
WORDS = ("criterion", "direction", "dataset", "variant", "model", "measure")
# The mark of criteria that are not about faithfulness.
OTHER = " †"


def scorecard(rows: pd.DataFrame, title: str) -> Figure:
    """Measures in rows, criteria in columns. A cell has its value and interval or, over several datasets and models,
    the mean relative rank of the measure; the darker, the better the rank. Where a criterion has fewer than three
    measures the background is grey and the number is the value. A criterion of plain and of manipulated texts has two
    columns, the latter last. A criterion without a value has none. Criteria that are not about faithfulness are last of
    all and marked. Degraded measures are not shown.

    rows: of the table `scorecard`, for one dataset and model or several.
    """
    rows = rows[rows["degraded_of"].isna()].astype(dict.fromkeys(WORDS, str))
    rows = rows.assign(criterion=criterion_columns(rows))
    defined = rows[rows["status"] == "ok"]
    if defined.empty:
        return style.sentence_figure(f"{title}: {_why_empty(rows)}")
    defined = defined.assign(rank=relative_ranks(defined))
    several = defined.groupby(["dataset", "model"], observed=True).ngroups > 1
    scored = rows[rows["criterion"].isin(defined["criterion"])]
    plain_first = scored.sort_values("variant", key=lambda variants: variants != PLAIN, kind="stable")
    faithfulness = scored.drop_duplicates("criterion").set_index("criterion")["faithfulness"]
    criteria = sorted(dict.fromkeys(plain_first["criterion"]), key=lambda name: not faithfulness[name])
    measures = style.ordered(rows["measure"])
    cells = defined.groupby(["measure", "criterion"], observed=True)
    ranks = cells["rank"].mean().unstack().reindex(index=measures, columns=criteria)
    means = cells["value"].mean().unstack().reindex(index=measures, columns=criteria)
    shown = ranks.where(ranks.notna(), means) if several else means
    single = defined[cells["value"].transform("size") == 1].dropna(subset=["ci_low", "ci_high"])
    keyed = single.set_index(["measure", "criterion"])[["ci_low", "ci_high"]].astype(float)
    intervals = {key: (low, high) for key, low, high in keyed.itertuples(name=None)}
    names = 0.075 * max(map(len, measures))
    with style.theme():
        figure = style.new_figure(names + WIDE * len(criteria) + 1.3, HIGH * len(measures) + 1.9)
        panel = figure.subplots()
        colours = sns.light_palette("#1f6f5c", as_cmap=True)
        _plot_cells(panel, ranks, shown, {} if several else intervals, colours)
        arrows = rows.drop_duplicates("criterion").set_index("criterion")["direction"].map(ARROWS)
        # Of ranks, more is always better.
        valued = [name for name in criteria if not several or ranks[name].isna().all()]
        columns = [
            name + (f" {arrows[name]}" if name in valued else "") + ("" if faithfulness[name] else OTHER)
            for name in criteria
        ]
        name_cells(panel, measures, columns, rotation=35)
        if not faithfulness[criteria].all():
            panel.set_xlabel(f"{OTHER} not about faithfulness", loc="right", fontsize=7, color=style.FAINT)
        bar = add_colour_bar(figure, panel, colours, 0, label="rank", ticks=[0, 1], shrink=0.6, aspect=20, pad=0.02)
        bar.ax.set_yticklabels(["worst", "best"])
        if several:
            note = "mean rank, from 0 (worst) to 1 (best); grey: value, with fewer than three measures"
        else:
            interval = " and 95 % interval over seeds" if intervals else ""
            note = f"value{interval}; ↑ higher is better, ↓ lower is better; darker: better rank"
        title_above(figure, title, note)
    return figure


def _why_empty(rows: pd.DataFrame) -> str:
    """Why no measure has a value: the most frequent reasons, each with its criteria."""
    given = rows.dropna(subset="reason").astype({"reason": str})
    if given.empty:
        return NOTHING
    criteria = given.groupby("reason")["criterion"].unique().map(", ".join)
    if len(criteria) == 1:
        return f"no measure has a score: {criteria.index[0]}"
    frequent = given["reason"].value_counts().index[:MOST_REASONS]
    return f"no measure has a score; {'; '.join(f'{criteria[reason]}: {reason}' for reason in frequent)}"


def criterion_columns(rows: pd.DataFrame) -> pd.Series:
    """The criterion of each row, marked as manipulated where plain texts have it too."""
    manipulated = rows["variant"] != PLAIN
    both = rows["criterion"].isin(rows["criterion"][~manipulated]) & manipulated
    return rows["criterion"].where(~both, rows["criterion"] + ", manipulated")


def meta_evaluation(rows: pd.DataFrame, title: str) -> Figure:
    """Mean τ between the rankings of every two criteria, and its interval.

    rows: of the table `meta_evaluation`.
    """
    defined = rows[rows["status"] == "ok"]
    if defined.empty:
        return style.sentence_figure(f"{title}: no two criteria rank the same measures")
    compared = {*defined["criterion_a"], *defined["criterion_b"]}
    names = [name for name in dict.fromkeys([*rows["criterion_a"], *rows["criterion_b"]]) if name in compared]
    colours = sns.color_palette("vlag", as_cmap=True)
    side = max(0.62 * len(names), 1.6)
    with style.theme():
        figure = style.new_figure(side + 2.6, side + 1.9)
        panel = figure.subplots()
        background = np.full((len(names), len(names), 4), 1.0)
        for row in rows[rows["criterion_a"].isin(names) & rows["criterion_b"].isin(names)].to_dict("records"):
            low, high = sorted((names.index(row["criterion_a"]), names.index(row["criterion_b"])))
            _write_tau(panel, background, high, low, row, colours)
        fill_cells(panel, background)
        panel.set(xlim=(0, len(names) - 1), ylim=(len(names), 1))
        name_cells(panel, names[1:], names[:-1], first=1)
        add_colour_bar(figure, panel, colours, -1, label="mean Kendall τ", ticks=TICKS, shrink=0.7)
        title_above(figure, title, _note("Kendall τ between the rankings of two criteria", defined))
    return figure


def trust(rows: pd.DataFrame, title: str) -> Figure:
    """Mean τ between the rankings of each criterion, in rows, and of each kind of known truth, in columns. Bold: the
    criterion agrees with the truth or contradicts it.

    rows: of the table `trust`.
    """
    defined = rows[rows["status"] == "ok"]
    if defined.empty:
        return style.sentence_figure(f"{title}: no criterion ranks measures for which a truth is known")
    criteria, truths = (
        [name for name in dict.fromkeys(rows[key]) if name in set(defined[key])] for key in ("criterion", "truth")
    )
    colours = sns.color_palette("vlag", as_cmap=True)
    with style.theme():
        figure = style.new_figure(WIDE * len(truths) + 3.4, 1.25 * HIGH * len(criteria) + 1.9)
        panel = figure.subplots()
        background = np.full((len(criteria), len(truths), 4), 1.0)
        shown = rows[rows["criterion"].isin(criteria) & rows["truth"].isin(truths)]
        for row in shown.assign(sure=sign_of(shown) != 0).to_dict("records"):
            _write_tau(panel, background, criteria.index(row["criterion"]), truths.index(row["truth"]), row, colours)
        fill_cells(panel, background)
        panel.set(xlim=(0, len(truths)), ylim=(len(criteria), 0))
        name_cells(panel, criteria, truths, rotation=35)
        add_colour_bar(figure, panel, colours, -1, label="mean Kendall τ", ticks=TICKS, shrink=0.7)
        subject = "Kendall τ with the ranking by a known truth"
        title_above(figure, title, f"{_note(subject, defined)}; bold: agrees or contradicts beyond chance")
    return figure


def _note(subject: str, defined: pd.DataFrame) -> str:
    starred = "; *: plain and manipulated texts" if (defined["matched"] == "dataset").any() else ""
    return f"{subject} [95 % interval]; pale: no interval{starred}"


def _write_tau(
    panel: Axes, background: np.ndarray, row: int, column: int, line: dict[Any, Any], colours: Colormap
) -> None:
    """Write a line's τ, bold if it is sure, and interval into a cell and colour it; a dash if it has none."""
    if line["status"] != "ok":
        write_cell(panel, row, column, "–", 0, 7, style.FAINT)
        return
    interval = bool(np.isfinite(line["ci_low"]))
    colour = np.array(colours((line["tau"] + 1) / 2))
    background[row, column] = colour if interval else 1 - PALE * (1 - colour)
    background[row, column, 3] = 1.0
    ink = style.ink_on(background[row, column])
    star = "*" if line["matched"] == "dataset" else ""
    weight = "bold" if line.get("sure") else "normal"
    write_cell(panel, row, column, style.signed(line["tau"]) + star, 3.2 if interval else 0, 7, ink, weight)
    if interval:
        write_cell(panel, row, column, _interval(line["ci_low"], line["ci_high"]), -6.0, 4.6, ink)


def _plot_cells(
    panel: Axes,
    ranks: pd.DataFrame,
    shown: pd.DataFrame,
    intervals: Mapping[tuple[str, str], tuple[float, float]],
    colours: Colormap,
) -> None:
    background = np.full((*ranks.shape, 4), 1.0)
    for (row, measure), (column, criterion) in product(enumerate(ranks.index), enumerate(ranks.columns)):
        rank, value = ranks.loc[measure, criterion], shown.loc[measure, criterion]
        if np.isnan(value):
            write_cell(panel, row, column, "–", 0, 7, style.FAINT)
            continue
        background[row, column] = colours(rank) if not np.isnan(rank) else (0.95, 0.95, 0.95, 1.0)
        ink, interval = style.ink_on(background[row, column]), intervals.get((measure, criterion))
        write_cell(panel, row, column, style.signed(value), 3.0 if interval else 0, 7, ink)
        if interval:
            write_cell(panel, row, column, _interval(*interval), -5.8, 4.4, ink)
    fill_cells(panel, background)
    panel.set(xlim=(0, ranks.shape[1]), ylim=(ranks.shape[0], 0))


def _interval(low: float, high: float) -> str:
    return f"[{style.signed(low)}, {style.signed(high)}]"


@figure(
    "scorecard",
    reads=["scorecard"],
    params=["study"],
    cells="explained",
    per=["dataset", "model"],
    only=["whole"],
    page="scorecard",
    experiment="scorecard",
    order=0,
)
def draw_scorecard(drawing: Drawing) -> Figure:
    """Every measure (rows) by every criterion (columns); darker cells have a better rank among the measures. For one
    dataset and model, a cell has the value and its 95 % interval over seeds (Student’s, from three seeds on); ↑: higher
    is better, ↓: lower is better. For the whole study, it has the mean rank over datasets and models, from 0 (worst) to
    1 (best). Grey cells have the value, because fewer than three measures cannot be ranked; a dash is a missing value.
    Criteria marked † are not about faithfulness.
    """
    return scorecard(drawing.rows(SCORECARD), drawing.title or drawing.facts["study"])


@figure("meta-evaluation", reads=["meta_evaluation"], page="scorecard", experiment="scorecard", order=10)
def draw_meta_evaluation(drawing: Drawing) -> Figure:
    """Agreement of every two criteria (rows and columns): Kendall τ between their rankings of the measures, mean over
    datasets and models, with its 95 % interval by resampling in brackets. At 1 both rank the measures in the same
    order, at 0 their rankings are unrelated, at −1 they are opposite; agreement does not show that either is right.
    Pale cells have too few datasets, models and seeds for an interval. A star marks criteria without texts in common:
    one ranks measures on plain texts, the other on manipulated ones.
    """
    return meta_evaluation(drawing.frame(META_EVALUATION), "Do criteria agree about measures?")


@figure("trust", reads=["trust"], page="trust", experiment="scorecard", order=20)
def draw_trust(drawing: Drawing) -> Figure:
    """Agreement of each criterion (rows) with each kind of known truth (columns): Kendall τ between their rankings of
    the measures, mean over datasets and models, with its 95 % interval by resampling in brackets. Higher is better: at
    1 the criterion ranks the measures as the truth does, at 0 its ranking is unrelated, at −1 it is opposite. Pale
    cells have too few datasets, models and seeds for an interval. A star marks criteria that rank measures on plain
    texts, while the truth is that of manipulated ones.
    """
    return trust(drawing.frame(TRUST), "Which criteria agree with a known truth?")
