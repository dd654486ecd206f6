"""Agreement on the page: attention against the rest in one small table, and all rows for the table with filters."""

from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from plumbline.figures.conventions import ordered
from plumbline.protocols.agreement.table import TOKENS, fewest_tokens, overall_taus, twins_once
from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.page import Page, Section
from plumbline.report.tables import DASH, Table, TableCell, named, number, without_categories

# The columns of words, and what the page calls them.
TITLES = {
    "dataset": "dataset",
    "model": "model",
    "measure_a": "measure",
    "measure_b": "other measure",
    "statistic": "statistic",
    "predicted_class": "predicted class",
}
# What may be ranked, from the fewest to the most.
RANKED = dict(zip(TOKENS, ("words of the text", "words of both texts", "all tokens"), strict=True))


def overview(agreement: pd.DataFrame, reference: str = "attention") -> Table | None:
    """Mean Kendall τ of attention with every other measure, as the study's Table 2; None if no model has attention."""
    several = agreement["tokens"].nunique() > 1
    frame = fewest_tokens(without_categories(agreement))
    ranked = f" Ranked are the {RANKED[frame['tokens'].iloc[0]]}." if several else ""
    frame = frame[(frame["statistic"] == "kendall") & (frame["predicted_class"] == "all")]
    frame = frame[(frame["measure_a"] == reference) | (frame["measure_b"] == reference)]
    if frame.empty:
        return None
    other = frame["measure_a"].where(frame["measure_a"] != reference, frame["measure_b"])
    frame = frame.assign(other=other)
    others = ordered(frame["other"])
    rows = []
    for cell, group in frame.groupby(["dataset", "variant", "model"]):
        dataset, variant, model = map(str, cell)
        means = [group[group["other"] == measure]["mean"].dropna() for measure in others]
        rows.append([TableCell(named(dataset, variant)), TableCell(model), *map(_placed, means)])
    caption = (
        f"Mean Kendall τ with {reference} over all texts, ± standard deviation over seeds, on an axis from −1 to 1."
        f"{ranked}"
    )
    return Table(caption, ["dataset", "model", *others], rows, frozenset(range(2, 2 + len(others))))


def _placed(means: pd.Series) -> TableCell:
    """Mean ± spread over seeds, with its place between −1 and 1."""
    if means.empty:
        return TableCell(DASH, None, "faint")
    mean, half = float(means.mean()), float(means.std(ddof=0))
    text = f"{number(mean)} ± {number(half)}" if len(means) > 1 else number(mean)
    return TableCell(text, mean, at=(mean + 1) / 2, half=half / 2)


def all_rows(agreement: pd.DataFrame, classes: dict[str, list[str]]) -> dict[str, Any]:
    """All rows over seeds for the page's script: `words` per column, and rows of places in them, then numbers.

    The numbers: mean, its spread over seeds, spread over texts, significant share, texts ranked, texts left out. Which
    tokens were ranked is a column where there is a choice.
    """
    frame = without_categories(agreement)
    frame["tokens"] = frame["tokens"].map(RANKED)
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
        words["tokens"] = [tokens for tokens in RANKED.values() if tokens in set(table["tokens"])]
    place = {column: {word: i for i, word in enumerate(known)} for column, known in words.items()}
    rows = [
        [
            *(place[column][line[column]] for column in titles),
            *(_rounded(line[column]) for column in ("mean", "seeds", "texts", "significant")),
            int(line["n"]),
            int(line["dropped"]),
        ]
        for line in table.to_dict("records")
    ]
    return {"titles": titles, "words": words, "rows": rows}


def class_name(classes: list[str], label: Any) -> str:
    """The name of a predicted class, which tables hold as its number in text or as `all`."""
    text = str(label)
    return classes[int(text)] if text.isdigit() and int(text) < len(classes) else text


def _rounded(value: float) -> float | None:
    return round(float(value), 4) if np.isfinite(value) else None


def _finding(agreement: pd.DataFrame, random: str) -> str:
    taus = fewest_tokens(overall_taus(without_categories(agreement)))
    taus = twins_once(taus[(taus["measure_a"] != random) & (taus["measure_b"] != random)])
    means = taus.groupby(["measure_a", "measure_b"])["mean"].mean().dropna()
    if means.empty:
        return ""
    pairs = "the one pair" if len(means) == 1 else f"{len(means)} pairs"
    return f"Mean τ over {pairs} of measures: {number(means.mean())}."


@page(
    "disagreement",
    title="Disagreement",
    about="Do any two measures put the words of a text in the same order?",
    tables=["agreement"],
    order=30,
)
def disagreement_page(content: Content) -> Page:
    """All pairs of measures."""
    agreement = content.tables["agreement"]
    pairs = Section(
        "all-pairs",
        "All pairs of measures",
        Markup(
            "Kendall’s τ and Spearman’s ρ are 1 for the same order of the words, 0 for unrelated ones and −1 for "
            "opposite ones; Pearson’s r is 1 where one measure is a rising straight line of the other. Of the top-k "
            "statistics <code>top-k-neely</code> is 1 where the same words come first in the same order; the other "
            "two are distances, and 0 there."
        ),
        html=Markup(
            '<div id="agreement-app"><noscript><p>This table needs scripts; its numbers are also in '
            "results/tables/agreement.csv.</p></noscript></div>"
        ),
    )
    lead = "The question of Neely et al. (2022), <cite>A Song of (Dis)agreement</cite>, for all measures of the study."
    return Page(
        [pairs],
        Markup(lead),
        _finding(agreement, content.random),
        {"agreement-data": all_rows(agreement, content.classes)},
        scripts=("assets/agreement.js",),
    )
