"""The files that the report is made from, read."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from plumbline.store import read_stamped
from plumbline.tables.chance import above_chance_rows

FIGURES = Path("results", "figures")
# What an SVG of Matplotlib has where something is drawn along an axis.
AXIS = 'id="matplotlib.axis_'


def read_tables(paths: Sequence[str]) -> dict[str, pd.DataFrame]:
    """The study's tables by their kind, as each file states it; a user's protocol may have brought kinds of its own.

    Of several of a kind, such as two entries of one protocol, the first is shown, as in the figures. Rows about models
    at chance are left out.
    """
    return {kind: above_chance_rows(kind, table.to_pandas()) for kind, table in reversed([*map(read_stamped, paths)])}


def read_figures(paths: Sequence[str]) -> dict[str, str]:
    """SVG text by the path below the folder of figures, without suffix; bars that have nothing to compare are none."""
    read = {
        Path(path).relative_to(FIGURES).with_suffix("").as_posix(): Path(path).read_text(encoding="utf-8")
        for path in paths
    }
    return {path: svg for path, svg in read.items() if path != "mean-differences" or AXIS in svg}
