"""Replaced attention on the page: one small table for permutations and one for adversaries."""

import pandas as pd
from markupsafe import Markup

from plumbline.protocols.adversary.table import LARGEST_JSD
from plumbline.protocols.agreement.page import overview
from plumbline.protocols.agreement.table import fewest_tokens, overall_taus
from plumbline.protocols.attention.bins import BINS, EVERY
from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.findings import by_measure
from plumbline.report.page import Page, Section, table_of
from plumbline.report.tables import DASH, Table, TableCell, named, number, numeric, spread_on_axis, without_categories


def permutation_overview(permutation: pd.DataFrame) -> Table:
    """The mean of the median change in output, over all texts and by the largest weight."""
    frame = _of_all_classes(permutation)
    rows = []
    for cell, group in frame.groupby(["dataset", "variant", "model"]):
        dataset, variant, model = map(str, cell)
        whole = group[group["max_attention_bin"] == EVERY]
        by_bin = [group[group["max_attention_bin"] == bin_] for bin_ in BINS]
        means = [
            numeric(_mean(part, "median_change_mean"), 3) if len(part) else TableCell(DASH, None) for part in by_bin
        ]
        texts = numeric(whole["n"].mean(), 0)
        rows.append(
            [
                TableCell(named(dataset, variant)),
                TableCell(model),
                texts,
                spread_on_axis(whole["median_change_mean"], 1),
                *means,
            ]
        )
    caption = (
        "Median change in output under permuted attention, ½ Σ |Δp|: mean over texts, ± standard deviation over seeds, "
        "on an axis from 0 to 1; then the same for texts whose largest weight lies in a bin. Low: the output does not "
        "depend on which words the attention is on, which says the more the larger that weight was. High: it does."
    )
    columns = ["dataset", "model", "texts", "all texts", *BINS]
    return Table(caption, columns, rows, frozenset(range(2, len(columns))))


def adversarial_overview(adversarial_attention: pd.DataFrame) -> Table:
    """For each epsilon, how many texts have an adversary and how far it is from the attention."""
    frame = _of_all_classes(adversarial_attention)
    frame = frame[frame["max_attention_bin"] == EVERY]
    rows = []
    for cell, group in frame.groupby(["dataset", "variant", "model", "epsilon"]):
        dataset, variant, model, epsilon = map(str, cell)
        found, mean = _mean(group, "feasible_fraction"), _mean(group, "jsd_mean")
        rows.append(
            [
                TableCell(named(dataset, variant)),
                TableCell(model),
                TableCell(epsilon, float(epsilon)),
                numeric(group["n"].mean(), 0),
                TableCell(f"{number(100 * found, 1)} %", found),
                spread_on_axis(group["jsd_mean"], LARGEST_JSD),
                TableCell(f"{number(100 * mean / LARGEST_JSD, 0)} %", mean),
            ]
        )
    caption = (
        "How far attention can be moved while the output changes by no more than ε: mean over texts of the largest "
        "Jensen-Shannon divergence found, ± standard deviation over seeds, on an axis from 0 to its maximum, ln 2. "
        "High: very different attention would have led to the same output. Low: only similar attention would. "
        "“Feasible” is the share of texts whose search ended within ε; of the others, what was found is moved back "
        "towards the attention until it is."
    )
    columns = ["dataset", "model", "ε", "texts", "feasible", "mean JSD", "of the maximum"]
    return Table(caption, columns, rows, frozenset(range(2, len(columns))))


def _of_all_classes(table: pd.DataFrame) -> pd.DataFrame:
    frame = without_categories(table)
    return frame[frame["predicted_class"] == EVERY]


def _mean(rows: pd.DataFrame, column: str) -> float:
    """The mean over texts and seeds; a bin holds other texts in each seed."""
    return float((rows[column] * rows["n"]).sum() / rows["n"].sum())


def _finding(agreement: pd.DataFrame, random: str) -> str:
    taus = fewest_tokens(overall_taus(without_categories(agreement)))
    taus = taus[(taus["measure_a"] == "attention") | (taus["measure_b"] == "attention")]
    others = taus["measure_a"].where(taus["measure_a"] != "attention", taus["measure_b"])
    taus, others = taus[others != random], others[others != random]
    return f"Mean τ with attention: {by_measure(taus['mean'], others)}." if len(taus) else ""


@page(
    "attention",
    title="Attention",
    about="Does attention agree with gradients and leave-one-out, and does the output notice other attention?",
    tables=["permutation", "adversarial_attention", "agreement:attention"],
    order=20,
)
def attention_page(content: Content) -> Page:
    """Attention against other measures and other attention."""
    frames = content.tables
    sections = [
        Section(
            "agreement",
            "Agreement with other measures",
            Markup(
                "Does attention put the words of a text in the same order as gradients and leave-one-out do? "
                "Kendall’s τ is 1 for the same order, 0 for unrelated ones and −1 for opposite ones. "
                '<a href="disagreement.html">All other pairs, and other statistics.</a>'
            ),
            {"overview": table_of(frames, "agreement", overview)},
        ),
        Section(
            "permuted",
            "Permutation",
            "Does the output notice that attention is shuffled? The attention of each text is permuted among its words "
            "again and again, while the hidden states stay as they are; the median of how much that changes the output "
            "is kept. If attention told which words mattered, moving it to others would have to matter too.",
            {"permutation": table_of(frames, "permutation", permutation_overview)},
            axis="from-zero",
        ),
        Section(
            "adversarial",
            "Adversarial attention",
            "How different can attention be with the same output? For each text other weights are searched for that "
            "differ from the attention as much as possible and change the output by no more than ε. If there are such, "
            "the attention is not the only explanation of the output.",
            {"adversarial-attention": table_of(frames, "adversarial_attention", adversarial_overview)},
            axis="from-zero",
        ),
    ]
    lead = Markup("The questions of Jain &amp; Wallace (2019), <cite>Attention is not Explanation</cite>.")
    finding = _finding(frames["agreement"], content.random) if "agreement" in frames else ""
    return Page(sections, lead, finding)
