"""Agreement in LaTeX: the table by predicted class, and the matrices of all pairs of measures."""

import re
from typing import Any

import pandas as pd

from plumbline.figures.conventions import ordered
from plumbline.protocols.agreement.schemas import AGREEMENT
from plumbline.protocols.agreement.selections import TOKEN_LABELS, overall_taus, triangles
from plumbline.tables.chance import above_chance_rows
from plumbline.tables.export import latex

# The colours of correlations 1 and -1, and the absolute correlation above which the text is white.
POSITIVE, NEGATIVE = (169, 55, 59), (35, 105, 189)
DARK = 0.7


def latex_matrices(agreement: pd.DataFrame, measures: list[str]) -> str:
    """Mean Kendall τ of every pair of measures over the texts of all seeds, with shaded cells (Neely et al. 2022).

    One table per model and set of tokens, with one block per dataset; `measures` sets the order of all measures.
    """
    taus = overall_taus(agreement)
    tables = ["% These tables need \\usepackage{booktabs} and \\usepackage[table]{xcolor}.\n"]
    if taus.empty:
        tables.append("% There is none: no model has two measures that rank words, or all models are at chance.\n")
    for (model, tokens), rows in taus.groupby(["model", "tokens"], observed=True):
        compared = [name for name in measures if name in {*rows["measure_a"], *rows["measure_b"]}]
        blocks = {dataset: triangles(block, compared)[0] for dataset, block in rows.groupby("dataset", observed=True)}
        style = pd.concat(blocks).dropna(how="all").style.map(_shade).format(_correlation)
        style = style.format_index(escape="latex", axis=0).format_index(escape="latex", axis=1)
        table = style.to_latex(hrules=True, convert_css=True, multirow_align="naive", clines="skip-last;data")
        # One rule between blocks, and only the bottom rule after the last.
        table = re.sub(
            r"\\cline\{.*\}(\n\\bottomrule)?", lambda match: "\\bottomrule" if match[1] else "\\midrule", table
        )
        tables.append(f"% {model}, {TOKEN_LABELS[str(tokens)]}\n{table}")
    return "\n".join(tables)


def _correlation(value: Any) -> str:
    return "" if pd.isna(value) else f"{value:.2f}".replace("-0.00", "0.00")


def _shade(value: Any) -> str:
    """CSS of a cell: red background for positive and blue for negative correlations, with readable text."""
    if pd.isna(value):
        return ""
    strength, full = min(abs(value), 1.0), POSITIVE if value > 0 else NEGATIVE
    background = "".join(f"{round(255 + (channel - 255) * strength):02x}" for channel in full)
    return f"background-color: #{background};" + ("color: white;" if strength > DARK else "")


def agreement_tables(agreement: pd.DataFrame) -> str:
    """The table by predicted class, then the matrices of all pairs."""
    rows = above_chance_rows(AGREEMENT.name, agreement)
    measures = ordered([*rows["measure_a"].unique(), *rows["measure_b"].unique()])
    return f"{latex(AGREEMENT, agreement)}\n{latex_matrices(rows, measures)}"
