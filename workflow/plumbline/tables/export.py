"""Tables for people: every table also as CSV, and the ones that papers print as LaTeX."""

from pathlib import Path
from typing import Any

import pandas as pd

from plumbline.store import replacing, write_table

# What a paper prints of a long table: the rows kept, what spans the lines, what spans the columns, and the cell.
LATEX_LAYOUT: dict[str, dict[str, Any]] = {
    "performance": {
        "keep": {"split": "test"},
        "index": ["dataset", "model"],
        "columns": ["metric"],
        "values": "value",
    },
    "agreement": {
        "keep": {"statistic": "kendall"},
        "index": ["dataset", "model", "measure_a", "measure_b"],
        "columns": ["predicted_class"],
        "values": "mean",
    },
    "permutation": {
        "keep": {"predicted_class": "all"},
        "index": ["dataset", "model"],
        "columns": ["max_attention_bin"],
        "values": "median_change_mean",
        "decimals": 3,
    },
    "adversarial_attention": {
        "keep": {"predicted_class": "all"},
        "index": ["dataset", "model", "epsilon"],
        "columns": ["max_attention_bin"],
        "values": "jsd_mean",
        "decimals": 3,
    },
    "adversary": {
        "keep": {"status": "ok"},
        "index": ["dataset", "model", "adversary", "strength"],
        "columns": ["selected_on"],
        "values": "attefa",
        "decimals": 3,
    },
    "roar": {
        "keep": {"trained_on": ["words"], "metric": ["accuracy", "macro_f1"]},
        "index": ["dataset", "model", "strategy", "unit", "metric", "measure"],
        "columns": ["level"],
        "values": "value",
    },
    "faithfulness": {
        "keep": {"status": "ok"},
        "index": ["dataset", "model", "strategy", "unit", "metric"],
        "columns": ["measure"],
        "values": "faithfulness",
        "interval": ("ci_low", "ci_high"),
        "decimals": 3,
    },
    "sparsity": {
        "keep": {"unit": "absolute"},
        "index": ["dataset", "model", "measure"],
        "columns": ["top"],
        "values": "share",
    },
    "synthetic_roar": {
        "keep": {},
        "index": ["removed"],
        "columns": ["curve"],
        "values": "accuracy",
        "decimals": 3,
    },
    "seed_variance": {
        "keep": {},
        "index": ["dataset", "model"],
        "columns": ["max_attention_bin"],
        "values": "jsd_mean",
        "decimals": 3,
    },
}


def write_everywhere(output: Any, name: str, frame: pd.DataFrame) -> None:
    """Write a table to every form that `output` names: parquet, csv, latex."""
    columns = {column: frame[column] for column in frame}
    write_table(output.parquet, name, columns)
    with replacing(Path(output.csv)) as temporary:
        frame.to_csv(temporary, index=False, float_format="%.6g")
    if hasattr(output, "latex"):
        with replacing(Path(output.latex)) as temporary:
            temporary.write_text(latex(name, frame), encoding="utf-8")


def latex(name: str, frame: pd.DataFrame) -> str:
    """A table as a paper prints it, with booktabs rules; means ± spread over seeds where a layout is known."""
    layout = LATEX_LAYOUT.get(name)
    if frame.empty:
        return f"% The table {name} has no rows.\n"
    if layout is None:
        return _styled(frame.dropna(axis=1, how="all"))
    for column, value in layout["keep"].items():
        frame = frame[frame[column].isin(value if isinstance(value, list) else [value])]
    # Not all lines have all that spans them, such as a strength.
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
    """A key as it is printed: nothing where there is none, and of a number such as a strength all that counts."""
    if isinstance(value, float):
        return "" if pd.isna(value) else f"{value:g}"
    return "" if value is None else value


def _styled(frame: pd.DataFrame) -> str:
    frame = frame.rename(columns=lambda part: str(part).replace("_", " "))
    style = frame.style.hide(axis="index").format(escape="latex", precision=2, na_rep="")
    return str(style.to_latex(hrules=True)).replace("±", r"$\pm$")
