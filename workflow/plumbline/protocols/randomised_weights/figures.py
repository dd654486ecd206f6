"""Rank correlation with the importances of the trained model, as its layers are randomised (Adebayo et al. 2018)."""

import pandas as pd
from matplotlib.figure import Figure

from plumbline.figures import style
from plumbline.figures.drawing import Drawing
from plumbline.figures.layout import finish, panel_figure
from plumbline.protocols.randomised_weights.schemas import RANDOMISED_WEIGHTS
from plumbline.protocols.roar.figures import measure_keys, plot_measures, seed_note
from plumbline.registry import figure
from plumbline.tables.chance import DEFINED

MODES = {
    "cascading": "cascading: layers from the output to …",
    "independent": "independent: only the layer …",
}
TALL = 2.0


def randomised_weights(table: pd.DataFrame, title: str, random: str = "") -> Figure:
    """τ with the trained model's importances by the randomised layers: a line for each measure, a panel for each mode.

    `table` has rows of the table `randomised_weights` for one dataset and model.
    """
    rows = table[table["status"].isin(DEFINED)]
    modes = [mode for mode in MODES if mode in set(rows["mode"])]
    if not modes:
        return style.sentence_figure(f"{title}: no importances could be compared.")
    measures = style.ordered(rows["measure"].astype(str), last=random)
    layers = rows.drop_duplicates("depth").set_index("depth")["stage"].sort_index()
    with style.theme():
        figure = panel_figure(style.ONE_COLUMN if len(modes) == 1 else style.TWO_COLUMNS)
        panels = figure.subplots(1, len(modes), sharey=True, squeeze=False)[0]
        for panel, mode in zip(panels, modes, strict=True):
            curves = rows[rows["mode"] == mode]
            ticks = dict(zip(layers.index, map(_label, layers), strict=True))
            if mode == "cascading":
                # Before the first stage both models are the trained one.
                seeds = curves[["measure", "seed"]].drop_duplicates()
                curves = pd.concat([seeds.assign(depth=0, kendall=1.0), curves], ignore_index=True)
                ticks = {0: "trained"} | ticks
            plot_measures(panel, curves, "depth", "kendall", measures, random)
            panel.axhline(0, color=style.FAINT, linewidth=0.8, zorder=1.5)
            panel.set_xticks(list(ticks), list(ticks.values()), rotation=40, ha="right", rotation_mode="anchor")
            panel.set_title(MODES[mode], loc="left", pad=5)
        panels[0].set(ylim=(min(-0.25, rows["kendall"].min() - 0.05), 1.05), ylabel="Kendall τ with trained weights")
        note = (
            "Near 0 is better: the importances depend on the randomised weights. At 1 they ignore them, as random "
            f"importances do. {seed_note(rows)}"
        )
        finish(figure, title, measure_keys(measures, random), note, TALL)
    return figure


def _label(layer: str) -> str:
    """The last name of a layer's path, with its number in a list."""
    *above, last = layer.split(".")
    return f"{above[-1]} {last}" if last.isdigit() else last


@figure(
    "randomised-weights",
    reads=["randomised_weights"],
    params=["random"],
    cells="randomised_weights",
    per=["dataset", "model"],
    page="randomised-weights",
    experiment="randomised weights",
    order=270,
)
def draw_randomised_weights(drawing: Drawing) -> Figure:
    """Kendall τ (vertically) between the importances of the trained model and those of the model with randomised
    weights, by the randomised layer (horizontally): all layers from the output to this one (left), and this layer alone
    (right). A line for each measure: means over texts and seeds, bands are 95 % intervals over seeds. Nearer to 0 is
    better: the importances depend on what the model has learned. At 1 they ignore the weights.
    """
    return randomised_weights(drawing.rows(RANDOMISED_WEIGHTS), drawing.title, drawing.facts["random"])
