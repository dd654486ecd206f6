"""Which pairs of measures agree more, dataset by dataset (Jain & Wallace 2019, Figures 3 to 5).

In the plotting code published with the study the files labelled attention-gradient and attention-leave-one-out were
swapped, and with them the captions of its Figures 3 and 4. Here every bar is what its label says.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumbline.figures import style
from plumbline.figures.drawing import Drawing
from plumbline.figures.intervals import NINETY_FIVE, interval, standard_error
from plumbline.protocols.agreement.figures import all_taus, of_pair
from plumbline.registry import figure

TEXT = ["seed", "split", "instance"]
# Mean, half the 95 % interval, and the value of each seed.
Bar = tuple[float, float, list[float]]


@dataclass(frozen=True)
class Roles:
    """The study's names for what the figure compares."""

    attention: str = "attention"
    gradient: str = "gradient"
    leave_one_out: str = "leave-one-out"
    recurrent: str = "bilstm-tanh"
    averaging: str = "average-tanh"

    @classmethod
    def of(cls, kinds: Mapping[str, str]) -> "Roles":
        """The names of a study whose entries stand for these registered objects; `kinds` maps name to object."""
        names = {kind: name for name, kind in reversed(list(kinds.items()))}
        return cls(**{role: names.get(kind, kind) for role, kind in asdict(cls()).items()})


@dataclass(frozen=True)
class Difference:
    """A panel: one bar per dataset, with half its 95 % interval and the value of each seed, or why there is none."""

    question: str
    label: str
    bars: dict[str, Bar]
    missing: str = ""


def mean_differences(taus: pd.DataFrame, roles: Roles | None = None) -> Figure:
    """Three panels of bars per dataset. `taus` has the columns that `kendall` gives, and `dataset` and `model`."""
    panels = differences(taus, roles or Roles())
    datasets = sorted({dataset for panel in panels for dataset in panel.bars})
    with style.theme():
        figure = style.new_figure(style.TWO_COLUMNS, 1.75 + 0.24 * max(2, len(datasets)))
        axes = figure.subplots(1, 3, squeeze=False)[0]
        for axis, panel in zip(axes, panels, strict=True):
            _draw(axis, panel, datasets)
        # The datasets are named once, left of the first panel that has bars.
        first = next((i for i, panel in enumerate(panels) if panel.bars), 0)
        for i, axis in enumerate(axes):
            axis.tick_params(labelleft=i == first)
        figure.suptitle("Which measures agree more, by dataset", x=0.01, ha="left", fontsize=9)
        figure.text(
            0.01,
            0.01,
            "Bars: mean over texts and seeds, 95 % interval over texts. Dots: seeds. Dashed: mean over datasets.",
            fontsize=6.5,
            color=style.FAINT,
        )
        # Room below the panels for that line.
        line = 0.2 / figure.get_figheight()
        figure.set_layout_engine("constrained", wspace=0.06, rect=(0, line, 1, 1 - line))
    return figure


def differences(taus: pd.DataFrame, roles: Roles) -> list[Difference]:
    """The three differences of the study's Figures 3, 4 and 5."""
    attention, gradient, deletion = roles.attention, roles.gradient, roles.leave_one_out
    recurrent = taus[taus["model"] == roles.recurrent]
    measures, models = [attention, gradient, deletion], [roles.recurrent]
    two = [
        Difference(
            f"Does {gradient} agree with\n{deletion} more than\n{attention} does?",
            f"τ({gradient}, {deletion})\n− τ({attention}, {deletion})",
            _by_dataset(recurrent, lambda frame: _paired(frame, (gradient, deletion), (attention, deletion))),
            lacking(taus, measures, models),
        ),
        Difference(
            f"Does {gradient} agree with\n{deletion} more than\nwith {attention}?",
            f"τ({gradient}, {deletion})\n− τ({attention}, {gradient})",
            _by_dataset(recurrent, lambda frame: _paired(frame, (gradient, deletion), (attention, gradient))),
            lacking(taus, measures, models),
        ),
    ]
    third = Difference(
        f"Does {attention} agree with\n{deletion} more where\nthe encoder averages?",
        f"τ({attention}, {deletion}),\n{roles.averaging} − {roles.recurrent}",
        _by_dataset(taus, lambda frame: _between_models(frame, (attention, deletion), roles)),
        lacking(taus, [attention, deletion], [roles.averaging, roles.recurrent]),
    )
    return [*two, third]


def lacking(taus: pd.DataFrame, measures: list[str], models: list[str]) -> str:
    """Which of these measures and models the study does not have, in words; empty if none."""
    have = {*taus["measure_a"], *taus["measure_b"]}
    words = [f"measure “{name}”" for name in measures if name not in have]
    words += [f"model “{name}”" for name in models if name not in set(taus["model"])]
    return "This study has no\n" + " and\nno ".join(words) + "." if words else ""


def _by_dataset(taus: pd.DataFrame, difference: Callable[[pd.DataFrame], Bar | None]) -> dict[str, Bar]:
    found = {str(dataset): difference(frame) for dataset, frame in taus.groupby("dataset", observed=True)}
    return {dataset: bar for dataset, bar in found.items() if bar is not None}


def _paired(taus: pd.DataFrame, one: tuple[str, str], other: tuple[str, str]) -> Bar | None:
    """Mean of τ(one) − τ(other), text by text and seed by seed."""
    columns = [*TEXT, "value"]
    both = of_pair(taus, *one)[columns].merge(of_pair(taus, *other)[columns], on=TEXT, suffixes=("", "_other"))
    if both.empty:
        return None
    both = both.assign(value=both["value"] - both["value_other"])
    return (*interval(both), both.groupby("seed")["value"].mean().tolist())


def _between_models(taus: pd.DataFrame, pair: tuple[str, str], roles: Roles) -> Bar | None:
    """Mean τ of a pair on the averaging model minus that on the recurrent one, as if the texts were independent."""
    there, here = (of_pair(taus[taus["model"] == model], *pair) for model in (roles.averaging, roles.recurrent))
    if there.empty or here.empty:
        return None
    errors = [
        standard_error(frame.groupby(["split", "instance"], observed=True)["value"].mean()) for frame in (there, here)
    ]
    seeds = there.groupby("seed")["value"].mean() - here.groupby("seed")["value"].mean()
    mean = float(there["value"].mean() - here["value"].mean())
    return mean, NINETY_FIVE * float(np.hypot(errors[0], errors[1])), seeds.dropna().tolist()


def _draw(axis: Axes, panel: Difference, datasets: list[str]) -> None:
    # Anchored at its first line, so that the three questions stand level whatever their letters.
    axis.annotate(
        panel.question,
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 36),
        textcoords="offset points",
        va="top",
        fontsize=7.5,
        linespacing=1.25,
    )
    if panel.missing or not panel.bars:
        axis.text(
            0.5,
            0.5,
            panel.missing or "No dataset has what\nthis panel compares.",
            transform=axis.transAxes,
            ha="center",
            va="center",
            color=style.FAINT,
            fontsize=7.5,
            linespacing=1.4,
        )
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
    axis.axvline(average, color="#B3432B", linestyle=(0, (4, 2)), linewidth=1.1, zorder=2.5)
    axis.annotate(
        style.signed(average),
        (average, 1),
        xycoords=("data", "axes fraction"),
        xytext=(-2 if average < 0 else 2, -1),
        textcoords="offset points",
        ha="right" if average < 0 else "left",
        va="top",
        fontsize=7,
        color="#B3432B",
    )
    # One free row on top for the number of the dashed line.
    axis.set(ylim=(len(datasets) - 0.4, -1.1), yticks=range(len(datasets)), yticklabels=datasets)
    axis.grid(visible=False, axis="y")
    axis.set_xlabel(panel.label, fontsize=7, linespacing=1.3)
    axis.margins(x=0.12)


@figure(
    "mean-differences",
    reads=["scores:agreement"],
    params=["kinds"],
    cells="agreement",
    page="attention",
    experiment="correlation",
    order=160,
    caption=(
        "Whose ranking agrees more with leave-one-out, and where (Jain & Wallace’s Figures 3 to 5; as there, "
        "of a BiLSTM and an average encoder with tanh attention)."
    ),
)
def draw_differences(drawing: Drawing) -> Figure:
    """Whose ranking agrees more with leave-one-out."""
    return mean_differences(all_taus(drawing), Roles.of(drawing.facts["kinds"]))
