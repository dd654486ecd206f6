"""Every measure against every protocol, and whether the protocols agree."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure

from plumbline.config.variants import PLAIN
from plumbline.figures import style
from plumbline.figures.drawing import Drawing
from plumbline.protocols.agreement.figures import TICKS
from plumbline.protocols.agreement.matrices import write_cell
from plumbline.protocols.scorecard.schemas import META_EVALUATION, SCORECARD
from plumbline.protocols.scorecard.table import relative_ranks
from plumbline.registry import figure

# The sides of a cell in inches.
WIDE, HIGH = 0.78, 0.36
NOTHING = "no protocol of this study scores a measure"
WORDS = ("criterion", "direction", "dataset", "variant", "model", "measure")
ARROWS = {"higher": "↑", "lower": "↓"}


def scorecard(rows: pd.DataFrame, title: str) -> Figure:
    """Measures down, criteria across; a cell has its value and interval, or the mean over datasets and models of where
    the measure stands, and is the darker the better it stands. Where a criterion judges one or two measures alone the
    ground is grey, and the number its value. A criterion of plain and of manipulated texts has two columns, the latter
    last. A criterion without a value has none.

    rows: of the table `scorecard`, about one dataset and model or several.
    """
    rows = rows.astype(dict.fromkeys(WORDS, str))
    rows = rows.assign(criterion=_columns(rows))
    told = rows[rows["status"] == "ok"]
    if told.empty:
        return style.sentence_figure(f"{title}: {NOTHING}")
    told = told.assign(place=relative_ranks(told))
    several = told.groupby(["dataset", "model"], observed=True).ngroups > 1
    scored = rows[rows["criterion"].isin(told["criterion"])]
    plain_first = scored.sort_values("variant", key=lambda variants: variants != PLAIN, kind="stable")
    criteria = list(dict.fromkeys(plain_first["criterion"]))
    measures = style.ordered(rows["measure"])
    cells = told.groupby(["measure", "criterion"], observed=True)
    place = cells["place"].mean().unstack().reindex(index=measures, columns=criteria)
    means = cells["value"].mean().unstack().reindex(index=measures, columns=criteria)
    shown = place.where(place.notna(), means) if several else means
    alone = told[cells["value"].transform("size") == 1].dropna(subset=["ci_low", "ci_high"])
    keys = zip(alone["measure"].tolist(), alone["criterion"].tolist(), strict=True)
    ends = dict(zip(keys, zip(alone["ci_low"].tolist(), alone["ci_high"].tolist(), strict=True), strict=True))
    names = 0.075 * max(map(len, measures))
    with style.theme():
        figure = style.new_figure(names + WIDE * len(criteria) + 1.3, HIGH * len(measures) + 1.9)
        panel = figure.subplots()
        colours = sns.light_palette("#1f6f5c", as_cmap=True)
        _cells(panel, place, shown, {} if several else ends, colours)
        arrows = rows.drop_duplicates("criterion").set_index("criterion")["direction"].map(ARROWS)
        columns = [f"{name} {arrows[name]}" for name in criteria]
        panel.set_xticks(np.arange(len(criteria)) + 0.5, columns, rotation=35, ha="right", rotation_mode="anchor")
        panel.set_yticks(np.arange(len(measures)) + 0.5, measures)
        bar = figure.colorbar(
            ScalarMappable(Normalize(0, 1), colours), ax=panel, ticks=[0, 1], shrink=0.6, aspect=20, pad=0.02
        )
        bar.ax.set_yticklabels(["worst", "best"])
        bar.outline.set_visible(False)
        _titled(figure, title, _said(several))
    return figure


def _columns(rows: pd.DataFrame) -> pd.Series:
    """The criterion of each row, and whether it is about manipulated texts where there are others."""
    manipulated = rows["variant"] != PLAIN
    both = rows["criterion"].isin(rows["criterion"][~manipulated]) & manipulated
    return rows["criterion"].where(~both, rows["criterion"] + ", manipulated")


def _said(several: bool) -> str:
    if several:
        return "mean place among three or more measures that a criterion ranks, 1 the best; grey: the value"
    return (
        "value, and 95 % interval over three or more seeds (the arrow: which is better), darker where it stands better"
    )


def meta_evaluation(rows: pd.DataFrame, title: str) -> Figure:
    """How alike every two criteria rank measures: mean τ and its interval.

    rows: of the table `meta_evaluation`.
    """
    told = rows[rows["status"] == "ok"]
    if told.empty:
        return style.sentence_figure(f"{title}: no two criteria rank the same measures")
    names = [
        name
        for name in dict.fromkeys([*rows["criterion_a"], *rows["criterion_b"]])
        if name in {*told["criterion_a"], *told["criterion_b"]}
    ]
    colours = sns.color_palette("vlag", as_cmap=True)
    side = max(0.62 * len(names), 1.6)
    with style.theme():
        figure = style.new_figure(side + 2.6, side + 1.9)
        panel = figure.subplots()
        ground = np.full((len(names), len(names), 4), 1.0)
        for row in rows[
            (rows["status"] != "ok") & rows["criterion_a"].isin(names) & rows["criterion_b"].isin(names)
        ].to_dict("records"):
            low, high = sorted((names.index(row["criterion_a"]), names.index(row["criterion_b"])))
            write_cell(panel, high, low, "–", 0, 7, style.FAINT)
        for row in told.to_dict("records"):
            low, high = sorted((names.index(row["criterion_a"]), names.index(row["criterion_b"])))
            ground[high, low] = colours((row["tau"] + 1) / 2)
            ink = style.ink_on(ground[high, low])
            elsewhere = "*" if row["matched"] == "dataset" else ""
            write_cell(panel, high, low, style.signed(row["tau"]) + elsewhere, 3.2, 7, ink)
            if np.isfinite(row["ci_low"]):
                write_cell(panel, high, low, _interval(row["ci_low"], row["ci_high"]), -6.0, 4.6, ink)
        _ground(panel, ground)
        panel.set(xlim=(0, len(names) - 1), ylim=(len(names), 1))
        panel.set_xticks(np.arange(len(names) - 1) + 0.5, names[:-1], rotation=40, ha="right", rotation_mode="anchor")
        panel.set_yticks(np.arange(1, len(names)) + 0.5, names[1:])
        bar = figure.colorbar(
            ScalarMappable(Normalize(-1, 1), colours), ax=panel, label="mean Kendall τ", ticks=TICKS, shrink=0.7
        )
        bar.outline.set_visible(False)
        said = "how alike two criteria rank measures, over datasets and models; 95 % interval if it can be told"
        beside = "; * plain texts beside manipulated ones" if (told["matched"] == "dataset").any() else ""
        _titled(figure, title, said + beside)
    return figure


def _cells(
    panel: Axes,
    place: pd.DataFrame,
    shown: pd.DataFrame,
    ends: Mapping[tuple[str, str], tuple[float, float]],
    colours: Colormap,
) -> None:
    ground = np.full((*place.shape, 4), 1.0)
    stand, values = place.to_numpy(dtype=float), shown.to_numpy(dtype=float)
    for row in range(place.shape[0]):
        for column in range(place.shape[1]):
            stands, value = stand[row, column], values[row, column]
            if np.isnan(value):
                write_cell(panel, row, column, "–", 0, 7, style.FAINT)
                continue
            ground[row, column] = colours(stands) if not np.isnan(stands) else (0.95, 0.95, 0.95, 1.0)
            ink, interval = style.ink_on(ground[row, column]), ends.get((place.index[row], place.columns[column]))
            write_cell(panel, row, column, style.signed(value), 3.0 if interval else 0, 7, ink)
            if interval:
                write_cell(panel, row, column, _interval(*interval), -5.8, 4.4, ink)
    _ground(panel, ground)
    panel.set(xlim=(0, place.shape[1]), ylim=(place.shape[0], 0))


def _interval(low: float, high: float) -> str:
    return f"[{style.signed(low)}, {style.signed(high)}]"


def _ground(panel: Axes, ground: np.ndarray) -> None:
    panel.pcolormesh(ground, edgecolor="white", linewidth=1.5)
    panel.grid(visible=False)
    panel.tick_params(length=0)
    for spine in panel.spines.values():
        spine.set_visible(False)


def _titled(figure: Figure, title: str, said: str) -> None:
    figure.suptitle(f"{title}\n", x=0.02, ha="left", fontsize=9)
    figure.text(0.02, 0.995 - 0.24 / figure.get_figheight(), said, va="top", fontsize=7, color=style.FAINT)


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
    caption=(
        "Every measure (rows) by every criterion of the study (columns), the darker the better it stands "
        "among the measures; for one dataset and model with the values, for all of them with the mean place, "
        "1 being the best."
    ),
)
def draw_scorecard(drawing: Drawing) -> Figure:
    """Every measure by every criterion, of the whole study or of one dataset and model."""
    return scorecard(drawing.rows(SCORECARD), drawing.title or drawing.facts["study"])


@figure(
    "meta-evaluation",
    reads=["meta_evaluation"],
    page="scorecard",
    experiment="scorecard",
    order=10,
    caption=(
        "How alike every two criteria rank the measures: Kendall τ, the mean over datasets and models, with "
        "its 95 % interval. Near 1 two protocols would choose the same measures, near 0 they have nothing to "
        "say to each other."
    ),
)
def draw_meta_evaluation(drawing: Drawing) -> Figure:
    """How alike criteria rank measures."""
    return meta_evaluation(drawing.frame(META_EVALUATION), "Do protocols agree about measures?")
