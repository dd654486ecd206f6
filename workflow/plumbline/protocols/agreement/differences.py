"""Which pairs of measures agree more, dataset by dataset (Jain & Wallace 2019, Figures 3 to 5).

The study's published plotting code swapped the files labelled attention-gradient and attention-leave-one-out, and
therefore the captions of Figures 3 and 4. Here every bar shows what its label states.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumbline.figures import style
from plumbline.figures.drawing import Drawing
from plumbline.figures.intervals import NINETY_FIVE, interval, standard_error
from plumbline.protocols.agreement.figures import pair_rows, read_taus
from plumbline.registry import figure

TEXT = ["seed", "split", "instance"]
# The colour of the mean over datasets.
AVERAGE = "#B3432B"
# Mean, half the 95 % interval, and the value of each seed.
Bar = tuple[float, float, list[float]]


@dataclass(frozen=True)
class Roles:
    """The names that a study gives to the compared measures and models."""

    attention: str = "attention"
    gradient: str = "gradient"
    leave_one_out: str = "leave-one-out"
    recurrent: str = "bilstm-tanh"
    averaging: str = "average-tanh"

    @classmethod
    def of(cls, kinds: Mapping[str, str]) -> "Roles":
        """The names of a study's entries for these registered objects; `kinds` maps entry name to registered name."""
        names = {kind: name for name, kind in reversed(list(kinds.items()))}
        return cls(**{role: names.get(kind, kind) for role, kind in asdict(cls()).items()})


@dataclass(frozen=True)
class Difference:
    """A panel with one bar per dataset, or the reason why it is missing."""

    question: str
    label: str
    bars: dict[str, Bar]
    missing: str = ""


def mean_differences(taus: pd.DataFrame, roles: Roles | None = None) -> Figure:
    """Three panels with a bar per dataset. `taus` has the columns of `kendall_rows`, and `dataset` and `model`."""
    panels = differences(taus, roles or Roles())
    datasets = sorted({dataset for panel in panels for dataset in panel.bars})
    with style.theme():
        figure = style.new_figure(style.TWO_COLUMNS, 1.75 + 0.24 * max(2, len(datasets)))
        axes = figure.subplots(1, 3, squeeze=False)[0]
        for axis, panel in zip(axes, panels, strict=True):
            _draw(axis, panel, datasets)
        # The datasets are labelled once, left of the first panel with bars.
        first = next((i for i, panel in enumerate(panels) if panel.bars), 0)
        for i, axis in enumerate(axes):
            axis.tick_params(labelleft=i == first)
        figure.suptitle("Which measures agree more, by dataset", x=0.01, ha="left", fontsize=9)
        note = "Bars: mean over texts and seeds, 95 % interval over texts. Circles: seeds. Dashed: mean over datasets."
        figure.text(0.01, 0.01, note, fontsize=6.5, color=style.FAINT)
        # Space below the panels for that line.
        line = 0.2 / figure.get_figheight()
        figure.set_layout_engine("constrained", wspace=0.06, rect=(0, line, 1, 1 - line))
    return figure


def differences(taus: pd.DataFrame, roles: Roles) -> list[Difference]:
    """The three differences of the study's Figures 3, 4 and 5."""
    attention, gradient, deletion = roles.attention, roles.gradient, roles.leave_one_out
    recurrent = taus[taus["model"] == roles.recurrent]
    missing = describe_missing(taus, [attention, gradient, deletion], [roles.recurrent])
    return [
        Difference(
            f"Does {gradient} agree with\n{deletion} more than\n{attention} does?",
            f"τ({gradient}, {deletion})\n− τ({attention}, {deletion})",
            _by_dataset(recurrent, lambda frame: _between_pairs(frame, (gradient, deletion), (attention, deletion))),
            missing,
        ),
        Difference(
            f"Does {gradient} agree with\n{deletion} more than\nwith {attention}?",
            f"τ({gradient}, {deletion})\n− τ({attention}, {gradient})",
            _by_dataset(recurrent, lambda frame: _between_pairs(frame, (gradient, deletion), (attention, gradient))),
            missing,
        ),
        Difference(
            f"Does {attention} agree with\n{deletion} more where\nthe encoder averages?",
            f"τ({attention}, {deletion}),\n{roles.averaging} − {roles.recurrent}",
            _by_dataset(taus, lambda frame: _between_models(frame, (attention, deletion), roles)),
            describe_missing(taus, [attention, deletion], [roles.averaging, roles.recurrent]),
        ),
    ]


def describe_missing(taus: pd.DataFrame, measures: list[str], models: list[str]) -> str:
    """A sentence with the measures and models that the study lacks; empty if it has all."""
    compared = {*taus["measure_a"], *taus["measure_b"]}
    missing = [f"measure “{name}”" for name in measures if name not in compared]
    missing += [f"model “{name}”" for name in models if name not in set(taus["model"])]
    return "This study has no\n" + " and\nno ".join(missing) + "." if missing else ""


def _by_dataset(taus: pd.DataFrame, difference: Callable[[pd.DataFrame], Bar | None]) -> dict[str, Bar]:
    bars = {str(dataset): difference(frame) for dataset, frame in taus.groupby("dataset", observed=True)}
    return {dataset: bar for dataset, bar in bars.items() if bar is not None}


def _between_pairs(taus: pd.DataFrame, first: tuple[str, str], second: tuple[str, str]) -> Bar | None:
    """Mean of τ(first) − τ(second) over the same texts and seeds."""
    columns = [*TEXT, "value"]
    both = pair_rows(taus, *first)[columns].merge(pair_rows(taus, *second)[columns], on=TEXT, suffixes=("", "_second"))
    if both.empty:
        return None
    both = both.assign(value=both["value"] - both["value_second"])
    return (*interval(both), both.groupby("seed")["value"].mean().tolist())


def _between_models(taus: pd.DataFrame, pair: tuple[str, str], roles: Roles) -> Bar | None:
    """Mean τ of a pair on the averaging model minus that on the recurrent one, treating the texts as independent."""
    models = [pair_rows(taus[taus["model"] == model], *pair) for model in (roles.averaging, roles.recurrent)]
    if any(frame.empty for frame in models):
        return None
    errors = [standard_error(frame.groupby(TEXT[1:], observed=True)["value"].mean()) for frame in models]
    averaging, recurrent = (frame.groupby("seed")["value"].mean() for frame in models)
    mean = float(models[0]["value"].mean() - models[1]["value"].mean())
    return mean, NINETY_FIVE * float(np.hypot(errors[0], errors[1])), (averaging - recurrent).dropna().tolist()


def _draw(axis: Axes, panel: Difference, datasets: list[str]) -> None:
    # Anchored at its first line, so that the three questions align whatever their letters.
    offset: dict[str, Any] = {"textcoords": "offset points", "va": "top"}
    question: dict[str, Any] = {"xycoords": "axes fraction", "fontsize": 7.5, "linespacing": 1.25}
    axis.annotate(panel.question, (0, 1), (0, 36), **offset, **question)
    if panel.missing or not panel.bars:
        missing = panel.missing or "No dataset has what\nthis panel compares."
        middle: dict[str, Any] = {"transform": axis.transAxes, "ha": "center", "va": "center"}
        axis.text(0.5, 0.5, missing, color=style.FAINT, fontsize=7.5, linespacing=1.4, **middle)
        axis.set_axis_off()
        return
    rows = [datasets.index(dataset) for dataset in panel.bars]
    means, halves, seeds = zip(*panel.bars.values(), strict=True)
    axis.barh(rows, means, height=0.62, color=style.BAR, alpha=0.75, linewidth=0)
    axis.errorbar(means, rows, xerr=halves, fmt="none", ecolor=style.INK, elinewidth=1.1, capsize=2.5, zorder=3)
    for row, values in zip(rows, seeds, strict=True):
        axis.plot(values, [row] * len(values), "o", color="white", markeredgecolor=style.INK, markersize=2.6, zorder=4)
    average = float(np.mean(means))
    axis.axvline(0, color=style.INK, linewidth=0.8)
    axis.axvline(average, color=AVERAGE, linestyle=(0, (4, 2)), linewidth=1.1, zorder=2.5)
    right, side = (-2, "right") if average < 0 else (2, "left")
    number: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "ha": side, "fontsize": 7, "color": AVERAGE}
    axis.annotate(style.signed(average), (average, 1), (right, -1), **offset, **number)
    # A free row on top for the number at the dashed line.
    axis.set(ylim=(len(datasets) - 0.4, -1.1), yticks=range(len(datasets)), yticklabels=datasets)
    axis.grid(visible=False, axis="y")
    axis.set_xlabel(panel.label, fontsize=7, linespacing=1.3)
    axis.margins(x=0.12)


@figure(
    "mean-differences",
    reads=["scores:agreement"],
    params=["kinds"],
    only=["attention-pairs"],
    page="attention",
    experiment="correlation",
    order=160,
)
def draw_differences(drawing: Drawing) -> Figure:
    """Which measures agree more, by dataset (rows): differences of mean Kendall τ for a BiLSTM (left and middle) and
    between an average encoder and a BiLSTM (right), all with tanh attention (Jain & Wallace’s Figures 3 to 5). Bars are
    means over texts and seeds with 95 % intervals over texts, circles single seeds, the dashed line the mean over
    datasets. Right of 0 the answer to the question above the panel is yes, left of 0 no.
    """
    return mean_differences(read_taus(drawing), Roles.of(drawing.facts["kinds"]))
