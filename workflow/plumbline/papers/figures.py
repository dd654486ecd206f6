"""Published numbers against ours, as one picture of a page."""

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.figures import style
from plumbline.figures.layout import finish, panel_figure

TALL = 3.4
# Shapes with an inside, so that hollow ones can be told apart.
SHAPES = "os^vDph"
NOTE = (
    "Each mark is a published number (horizontally) and our value of it (vertically, ± standard deviation over seeds). "
    "On the diagonal both are equal. Hollow marks are outside the tolerance of their number."
)


def published_and_ours(rows: pd.DataFrame, title: str) -> Figure:
    """Our values by the published ones, in a colour per model.

    rows: of the table `reproduction`, judged, in one unit.
    """
    rows = rows.dropna(subset=["published", "ours", "within"])
    if rows.empty:
        return style.sentence_figure(f"{title}: no published number that can be judged")
    models = list(rows["model"].fillna("").unique())
    colours = dict(zip(models, sns.color_palette("colorblind", len(models)), strict=True))
    markers = {model: SHAPES[place % len(SHAPES)] for place, model in enumerate(models)}
    with style.theme():
        drawn = panel_figure(style.TWO_COLUMNS * 0.75)
        panel = drawn.subplots()
        for (model, within), some in rows.assign(model=rows["model"].fillna("")).groupby(["model", "within"]):
            panel.errorbar(
                some["published"], some["ours"], yerr=some["ours_spread"].fillna(0), linestyle="", elinewidth=0.6,
                marker=markers[model], markersize=3.8, color=colours[model],
                markerfacecolor=colours[model] if within else "white",
            )  # fmt: skip
        ends = [rows[["published", "ours"]].min().min(), rows[["published", "ours"]].max().max()]
        panel.plot(ends, ends, color=style.FAINT, linewidth=0.8, zorder=0)
        panel.set_xlabel("published")
        panel.set_ylabel("ours")
        panel.set_aspect("equal")
        keys = [
            Line2D([], [], color=colours[model], marker=markers[model], markersize=4, linestyle="", label=model)
            for model in models
        ]
        finish(drawn, title, keys, NOTE, TALL)
    return drawn
