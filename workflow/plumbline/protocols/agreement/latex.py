"""Agreement in LaTeX: the table by predicted class, and the matrices of all pairs of measures."""

import re
from typing import Any

import pandas as pd

from plumbline.figures.conventions import ordered
from plumbline.protocols.agreement.schemas import AGREEMENT
from plumbline.protocols.agreement.table import RANKED, overall_taus, triangles
from plumbline.tables.chance import above_chance_rows
from plumbline.tables.export import latex

# The ends of the colours of correlations, and the strength from which letters on them are white.
ALIKE, OPPOSITE = (169, 55, 59), (35, 105, 189)
DARK = 0.7


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


def agreement_tables(agreement: pd.DataFrame) -> str:
    """The table by predicted class, then the matrices of all pairs."""
    known = above_chance_rows(AGREEMENT.name, agreement)
    measures = ordered([*known["measure_a"].unique(), *known["measure_b"].unique()])
    return f"{latex(AGREEMENT, agreement)}\n{latex_matrices(known, measures)}"
