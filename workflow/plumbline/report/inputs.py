"""Reading the input files of the report."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from plumbline.store import read_stamped
from plumbline.tables.chance import above_chance_rows

FIGURES = "results/figures/"
# Matplotlib writes this id for an axis: a figure without it is only a sentence.
AXIS = 'id="matplotlib.axis_'


def read_tables(paths: Sequence[str]) -> dict[str, pd.DataFrame]:
    """The study's tables by their stamped names, which include those of plug-in protocols.

    Of several tables of one name, such as two entries of one protocol, the first is shown, as in the figures. Rows of
    models at chance are left out.
    """
    return {kind: above_chance_rows(kind, table.to_pandas()) for kind, table in reversed([*map(read_stamped, paths)])}


def read_figures(paths: Sequence[str]) -> dict[str, str]:
    """SVG text by path below the folder of figures, without suffix; `mean-differences` only if it has bars."""
    texts = {path.rpartition(FIGURES)[2].removesuffix(".svg"): Path(path).read_text(encoding="utf-8") for path in paths}
    return {path: svg for path, svg in texts.items() if path != "mean-differences" or AXIS in svg}
