"""Agreement in the report: a table of attention with every other measure, and the data of the filterable table."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from plumbline.figures.conventions import ordered
from plumbline.protocols.agreement.selections import drop_twins, fewest_tokens, overall_taus
from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.page import Page, Section
from plumbline.report.tables import DASH, Table, TableCell, by_cell, named, number, spread, without_categories

# The categorical columns with their titles.
TITLES = {
    "dataset": "dataset",
    "model": "model",
    "measure_a": "measure",
    "measure_b": "other measure",
    "statistic": "statistic",
    "predicted_class": "predicted class",
}
# The sets of tokens, from the smallest to the largest.
RANKED_TOKENS = {"text": "words of the text", "texts": "words of both texts", "all": "all tokens"}


def agreement_overview(agreement: pd.DataFrame, reference: str = "attention") -> Table | None:
    """Mean Kendall τ of attention with every other measure, as in Jain & Wallace's Table 2; None without attention."""
    several = agreement["tokens"].nunique() > 1
    frame = fewest_tokens(without_categories(agreement))
    ranked = f" The ranked tokens are the {RANKED_TOKENS[frame['tokens'].iloc[0]]}." if several else ""
    frame = frame[(frame["statistic"] == "kendall") & (frame["predicted_class"] == "all")]
    frame = frame[(frame["measure_a"] == reference) | (frame["measure_b"] == reference)]
    if frame.empty:
        return None
    frame = frame.assign(other=frame["measure_a"].where(frame["measure_a"] != reference, frame["measure_b"]))
    others = ordered(frame["other"])
    rows = []
    for names, group in by_cell(frame):
        means = [group[group["other"] == measure]["mean"].dropna() for measure in others]
        rows.append([*names, *map(_tau_cell, means)])
    caption = (
        f"Mean Kendall τ with {reference} over all texts, ± standard deviation over seeds, on an axis from −1 to 1."
        f"{ranked}"
    )
    return Table(caption, ["dataset", "model", *others], rows, frozenset(range(2, 2 + len(others))))


def _tau_cell(means: pd.Series) -> TableCell:
    """Mean ± standard deviation over seeds, with its position on an axis from −1 to 1."""
    if means.empty:
        return TableCell(DASH, None, "faint")
    return replace(spread(means, 2), at=(float(means.mean()) + 1) / 2, half=float(means.std(ddof=0)) / 2)


def filter_table_data(agreement: pd.DataFrame, classes: dict[str, list[str]]) -> dict[str, Any]:
    """All rows, aggregated over seeds, for the page's script: the `words` of each categorical column, and rows of
    indices into them followed by numbers.

    The numbers are mean, standard deviation over seeds, standard deviation over texts, significant fraction, ranked
    texts and dropped texts. The ranked tokens are a column if there are several sets.
    """
    frame = without_categories(agreement)
    frame["tokens"] = frame["tokens"].map(RANKED_TOKENS)
    titles = TITLES | ({"tokens": "ranked"} if frame["tokens"].nunique() > 1 else {})
    frame["predicted_class"] = [
        class_name(classes.get(dataset, []), label)
        for dataset, label in zip(frame["dataset"], frame["predicted_class"], strict=True)
    ]
    frame["dataset"] = [named(*pair) for pair in zip(frame["dataset"], frame["variant"], strict=True)]
    groups = frame.groupby(list(titles))
    table = groups.agg(
        mean=("mean", "mean"),
        texts=("std", "mean"),
        significant=("significant_fraction", "mean"),
        n=("n", "sum"),
        dropped=("dropped", "sum"),
    )
    table["seeds"] = groups["mean"].std(ddof=0)
    table = table.reset_index()
    words = {column: sorted(table[column].unique()) for column in TITLES}
    if "tokens" in titles:
        words["tokens"] = [tokens for tokens in RANKED_TOKENS.values() if tokens in set(table["tokens"])]
    rows = [
        [
            *(words[column].index(row[column]) for column in titles),
            *(_rounded(row[column]) for column in ("mean", "seeds", "texts", "significant")),
            int(row["n"]),
            int(row["dropped"]),
        ]
        for row in table.to_dict("records")
    ]
    return {"titles": titles, "words": words, "rows": rows}


def class_name(classes: list[str], label: Any) -> str:
    """The name of a predicted class; tables contain its number as text, or `all`."""
    text = str(label)
    return classes[int(text)] if text.isdigit() and int(text) < len(classes) else text


def _rounded(value: float) -> float | None:
    return round(float(value), 4) if np.isfinite(value) else None


def _finding(agreement: pd.DataFrame, left_out: Sequence[str]) -> str:
    taus = fewest_tokens(overall_taus(without_categories(agreement)))
    taus = drop_twins(taus[~taus["measure_a"].isin(left_out) & ~taus["measure_b"].isin(left_out)])
    means = taus.groupby(["measure_a", "measure_b"])["mean"].mean().dropna()
    if means.empty:
        return ""
    pairs = "the one pair" if len(means) == 1 else f"{len(means)} pairs"
    return f"Mean Kendall τ over {pairs} of measures: {number(means.mean())}."


@page("disagreement", title="Disagreement", tables=["agreement"], order=30)
def disagreement_page(content: Content) -> Page:
    """Do two measures rank the words of a text in the same order?"""
    agreement = content.tables["agreement"]
    pairs = Section(
        "all-pairs",
        "All pairs of measures",
        Markup(
            "Kendall’s τ and Spearman’s ρ are 1 for the same order of the words, 0 for unrelated orders and −1 for "
            "opposite orders; Pearson’s r is 1 if one measure is an increasing linear function of the other. Of the "
            "top-k statistics, <code>top-k-neely</code> is 1 if the same words come first in the same order; the "
            "other two are distances, which are then 0."
        ),
        html=Markup(
            '<div id="agreement-app"><noscript><p>This table needs JavaScript; its numbers are also in '
            "results/tables/agreement.csv.</p></noscript></div>"
        ),
    )
    lead = "The question of Neely et al. (2022), <cite>A Song of (Dis)agreement</cite>, for all measures of the study."
    return Page(
        [pairs],
        Markup(lead),
        _finding(agreement, [content.random, *content.degraded]),
        {"agreement-data": filter_table_data(agreement, content.classes)},
        scripts=("assets/agreement.js",),
    )
