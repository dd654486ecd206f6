"""Tables for people: every table also as CSV, and the ones that papers print as LaTeX."""

import re
from pathlib import Path
from typing import Any

import pandas as pd

from plumbline.protocols.agreement.table import RANKED, overall_taus, triangles
from plumbline.protocols.performance.chance import above
from plumbline.store import replacing, write_table

# The ends of the colours of correlations, and the strength from which letters on them are white.
ALIKE, OPPOSITE = (169, 55, 59), (35, 105, 189)
DARK = 0.7

# What a paper prints of a long table: the rows kept, what spans the lines, what spans the columns, and the cell.
LATEX_LAYOUT: dict[str, dict[str, Any]] = {
    "performance": {
        "keep": {"split": "test"},
        "index": ["dataset", "variant", "model"],
        "columns": ["metric"],
        "values": "value",
    },
    "agreement": {
        "keep": {"statistic": "kendall"},
        "index": ["dataset", "variant", "model", "tokens", "measure_a", "measure_b"],
        "columns": ["predicted_class"],
        "values": "mean",
    },
    "permutation": {
        "keep": {"predicted_class": "all"},
        "index": ["dataset", "variant", "model"],
        "columns": ["max_attention_bin"],
        "values": "median_change_mean",
        "decimals": 3,
    },
    "erasure": {
        "keep": {"ratio": float("nan")},
        "index": ["dataset", "variant", "model", "measure"],
        "columns": ["metric"],
        "values": "mean",
        "decimals": 3,
    },
    "adversarial_attention": {
        "keep": {"predicted_class": "all"},
        "index": ["dataset", "variant", "model", "epsilon"],
        "columns": ["max_attention_bin"],
        "values": "jsd_mean",
        "decimals": 3,
    },
    "adversary": {
        "keep": {"status": "ok"},
        "index": ["dataset", "variant", "model", "base_seed", "adversary", "objective", "strength"],
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
    "ground_truth": {
        "keep": {"truth": True, "class": "all"},
        "index": ["dataset", "variant", "model"],
        "columns": ["measure"],
        "values": "attributed_fraction",
    },
    "faithfulness": {
        "keep": {"status": "ok"},
        "index": ["dataset", "model", "strategy", "unit", "metric"],
        "columns": ["measure"],
        "values": "faithfulness",
        "interval": ("ci_low", "ci_high"),
        "decimals": 3,
    },
    "scorecard": {
        "keep": {"status": "ok"},
        "index": ["dataset", "variant", "model", "measure"],
        "columns": ["criterion"],
        "values": "value",
        "interval": ("ci_low", "ci_high"),
    },
    "meta_evaluation": {
        "keep": {"status": "ok"},
        "index": ["criterion_a"],
        "columns": ["criterion_b"],
        "values": "tau",
        "interval": ("ci_low", "ci_high"),
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
    "timings": {
        "keep": {},
        "index": ["rule"],
        "columns": ["device"],
        "values": "seconds",
        "decimals": 1,
    },
    # As it stands, without what is said of each quirk.
    "quirks": {
        "keep": {"status": "ok"},
        "show": [
            *("quirk", "table", "dataset", "model", "measure_a", "measure_b", "metric"),
            *("published", "as_published", "corrected"),
        ],
    },
    "seed_variance": {
        "keep": {},
        "index": ["dataset", "variant", "model", "base_seed"],
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
    frame = above(name, frame)
    for column, value in (layout or {"keep": {}})["keep"].items():
        frame = frame[frame[column].isin(value if isinstance(value, list) else [value])]
    if frame.empty:
        return f"% The table {name} has no rows.\n"
    if layout is None or "show" in layout:
        return _styled(frame[(layout or {}).get("show", list(frame))].dropna(axis=1, how="all"))
    frame = frame.dropna(subset=layout["values"])
    if frame.empty:
        return f"% The table {name} has no values.\n"
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


def latex_matrices(agreement: pd.DataFrame, measures: list[str]) -> str:
    """Mean Kendall τ of every pair of measures over the texts of all seeds, shaded by it, as A Song of (Dis)agreement
    prints it: a table for each model and set of tokens, a block for each dataset. `measures` are all, in their order.
    """
    taus = overall_taus(agreement)
    tables = ["% These tables need \\usepackage{booktabs} and \\usepackage[table]{xcolor}.\n"]
    if taus.empty:
        tables.append("% There is none: no model has two measures that rank, or all are at chance.\n")
    for (model, tokens), rows in taus.groupby(["model", "tokens"], observed=True):
        here = [name for name in measures if name in {*rows["measure_a"], *rows["measure_b"]}]
        blocks = {dataset: triangles(some, here)[0] for dataset, some in rows.groupby("dataset", observed=True)}
        style = pd.concat(blocks).dropna(how="all").style.map(_shade).format(_correlation)
        style = style.format_index(escape="latex", axis=0).format_index(escape="latex", axis=1)
        table = style.to_latex(hrules=True, convert_css=True, multirow_align="naive", clines="skip-last;data")
        # A rule between blocks, and none but the last below the last of them.
        table = re.sub(
            r"\\cline\{.*\}(\n\\bottomrule)?", lambda found: "\\bottomrule" if found[1] else "\\midrule", table
        )
        tables.append(f"% {model}, {RANKED[str(tokens)]}\n{table}")
    return "\n".join(tables)


def _correlation(value: Any) -> str:
    return "" if pd.isna(value) else f"{value:.2f}".replace("-0.00", "0.00")


def _shade(value: Any) -> str:
    """The ground of a correlation's cell, redder above 0 and bluer below, and letters that can be read on it."""
    if pd.isna(value):
        return ""
    strength, end = min(abs(value), 1.0), ALIKE if value > 0 else OPPOSITE
    ground = "".join(f"{round(255 + (part - 255) * strength):02x}" for part in end)
    return f"background-color: #{ground};" + ("color: white;" if strength > DARK else "")


def _short(value: Any) -> Any:
    """A key as it is printed: nothing where there is none, and of a number such as a strength all that counts."""
    if isinstance(value, float):
        return "" if pd.isna(value) else f"{value:g}"
    return "" if value is None else value


def _styled(frame: pd.DataFrame) -> str:
    frame = frame.rename(columns=lambda part: str(part).replace("_", " "))
    style = frame.style.hide(axis="index").format(escape="latex", precision=2, na_rep="")
    return str(style.to_latex(hrules=True)).replace("±", r"$\pm$")
