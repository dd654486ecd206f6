"""Writing tables as Parquet, CSV and LaTeX."""

from pathlib import Path
from typing import Any

import pandas as pd

from plumbline.store import TableSchema, replacing, write_table, write_text
from plumbline.tables.chance import above_chance_rows


def write_formats(output: Any, kind: TableSchema, frame: pd.DataFrame, printed: str | None = None) -> None:
    """Write a table to the paths `parquet`, `csv` and `latex`; `printed` replaces the LaTeX of its layout."""
    write_table(output.parquet, kind, {column: frame[column] for column in frame})
    with replacing(Path(output.csv)) as temporary:
        frame.to_csv(temporary, index=False, float_format="%.6g")
    write_text(output.latex, latex(kind, frame) if printed is None else printed)


def latex(kind: TableSchema, frame: pd.DataFrame) -> str:
    """A table in LaTeX with booktabs rules; means ± standard deviations over seeds if its schema has a layout."""
    name, layout = kind.name, kind.latex
    frame = above_chance_rows(name, frame)
    for column, value in layout.get("keep", {}).items():
        frame = frame[frame[column].isin(value if isinstance(value, list) else [value])]
    if frame.empty:
        return f"% The table {name} has no rows.\n"
    if not layout or "show" in layout:
        return _styled(frame[layout.get("show", list(frame))].dropna(axis=1, how="all"))
    frame = frame.dropna(subset=layout["values"])
    if frame.empty:
        return f"% The table {name} has no values.\n"
    # Some keys may be missing, such as the strength of an adversary.
    keys = [*layout["index"], *layout["columns"]]
    frame = frame.assign(**{key: frame[key].astype(object).map(_short) for key in keys})
    cells = frame.groupby(keys)[layout["values"]]
    number = f"{{:.{layout.get('decimals', 2)}f}}".format
    texts = cells.mean().map(number)
    spread = cells.std(ddof=0)
    texts = texts.where(cells.count() < 2, texts + " ± " + spread.map(number))
    if "interval" in layout:
        low, high = (frame.groupby(keys)[bound].first() for bound in layout["interval"])
        texts = texts.where(low.isna(), texts + " [" + low.map(number) + ", " + high.map(number) + "]")
    return _styled(texts.unstack(layout["columns"]).fillna("").reset_index())


def _short(value: Any) -> Any:
    """A key as printed: empty if missing, a float without trailing zeros."""
    if isinstance(value, float):
        return "" if pd.isna(value) else f"{value:g}"
    return "" if value is None else value


def _styled(frame: pd.DataFrame) -> str:
    frame = frame.rename(columns=lambda part: str(part).replace("_", " "))
    style = frame.style.hide(axis="index").format(escape="latex", precision=2, na_rep="")
    return str(style.to_latex(hrules=True)).replace("±", r"$\pm$")
