"""Attention in the report: its agreement with other measures, permuted attention and adversarial attention."""

from dataclasses import replace

import pandas as pd
from markupsafe import Markup

from plumbline.protocols.adversary.table import LARGEST_JSD
from plumbline.protocols.agreement.page import agreement_overview
from plumbline.protocols.agreement.selections import fewest_tokens, overall_taus
from plumbline.protocols.attention.bins import BINS, EVERY
from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.findings import by_measure
from plumbline.report.page import Page, Section, table_of
from plumbline.report.tables import DASH, Table, TableCell, by_cell, number, numeric, spread_on_axis, without_categories


def permutation_overview(permutation: pd.DataFrame) -> Table:
    """Mean over texts of the median change in output, for all texts and by the largest weight."""
    frame = _all_classes(permutation)
    rows = []
    for names, group in by_cell(frame):
        whole = group[group["max_attention_bin"] == EVERY]
        by_bin = [group[group["max_attention_bin"] == bin_] for bin_ in BINS]
        means = [
            numeric(_mean(part, "median_change_mean"), 3) if len(part) else TableCell(DASH, None) for part in by_bin
        ]
        overall = [numeric(whole["n"].mean(), 0), spread_on_axis(whole["median_change_mean"], 1)]
        rows.append([*names, *overall, *means])
    caption = (
        "Median change in output under permuted attention, ½ Σ |Δp|: mean over texts, ± standard deviation over seeds, "
        "on an axis from 0 to 1; then the mean over the texts whose largest attention weight is in each interval. Low: "
        "the output does not depend on which words have the attention, which counts most for large weights. High: it "
        "does."
    )
    columns = ["dataset", "model", "texts", "all texts", *BINS]
    return Table(caption, columns, rows, frozenset(range(2, len(columns))))


def adversarial_overview(adversarial_attention: pd.DataFrame) -> Table:
    """For each epsilon, the share of feasible texts and the JSD between attention and adversary."""
    frame = _all_classes(adversarial_attention)
    frame = frame[frame["max_attention_bin"] == EVERY]
    rows = []
    for (*names, epsilon), group in by_cell(frame, "epsilon"):
        feasible, mean = _mean(group, "feasible_fraction"), _mean(group, "jsd_mean")
        rows.append(
            [
                *names,
                replace(epsilon, sort=float(epsilon.text)),
                numeric(group["n"].mean(), 0),
                TableCell(f"{number(100 * feasible, 1)} %", feasible),
                spread_on_axis(group["jsd_mean"], LARGEST_JSD),
                TableCell(f"{number(100 * mean / LARGEST_JSD, 0)} %", mean),
            ]
        )
    caption = (
        "How different attention can be while the output changes by at most ε: mean over texts of the largest "
        "Jensen-Shannon divergence (JSD) found, ± standard deviation over seeds, on an axis from 0 to its maximum, ln "
        "2. High: very different attention gives the same output. Low: only similar attention does. “feasible” is the "
        "share of texts whose search ended within ε; for the others, the adversarial attention is interpolated towards "
        "the attention until the change is at most ε."
    )
    columns = ["dataset", "model", "ε", "texts", "feasible", "mean JSD", "of the maximum"]
    return Table(caption, columns, rows, frozenset(range(2, len(columns))))


def _all_classes(table: pd.DataFrame) -> pd.DataFrame:
    frame = without_categories(table)
    return frame[frame["predicted_class"] == EVERY]


def _mean(rows: pd.DataFrame, column: str) -> float:
    """The mean over texts and seeds, weighted because a bin has different texts in each seed."""
    return float((rows[column] * rows["n"]).sum() / rows["n"].sum())


def _finding(agreement: pd.DataFrame, random: str) -> str:
    taus = fewest_tokens(overall_taus(without_categories(agreement)))
    taus = taus[(taus["measure_a"] == "attention") | (taus["measure_b"] == "attention")]
    others = taus["measure_a"].where(taus["measure_a"] != "attention", taus["measure_b"])
    taus, others = taus[others != random], others[others != random]
    return f"Mean Kendall τ with attention: {by_measure(taus['mean'], others)}." if len(taus) else ""


@page("attention", title="Attention", tables=["permutation", "adversarial_attention", "agreement:attention"], order=20)
def attention_page(content: Content) -> Page:
    """Does attention agree with gradients and leave-one-out, and does the output depend on it?"""
    frames = content.tables
    sections = [
        Section(
            "agreement",
            "Agreement with other measures",
            Markup(
                "Does attention rank the words of a text in the same order as gradients and leave-one-out? "
                "Kendall’s τ is 1 for the same order, 0 for unrelated orders and −1 for opposite orders. "
                '<a href="disagreement.html">All other pairs, and other statistics.</a>'
            ),
            {"overview": table_of(frames, "agreement", agreement_overview)},
        ),
        Section(
            "permuted",
            "Permutation",
            "Does the output change when attention is permuted? The attention of each text is permuted among its words "
            "many times, while the hidden states stay fixed; the median change in output is reported. If attention "
            "identified the important words, moving it to other words would change the output.",
            {"permutation": table_of(frames, "permutation", permutation_overview)},
            axis="from-zero",
        ),
        Section(
            "adversarial",
            "Adversarial attention",
            "How different can attention be with the same output? For each text, a search finds weights that differ "
            "from the attention as much as possible and change the output by at most ε. If such weights exist, the "
            "attention is not the only explanation of the output.",
            {"adversarial-attention": table_of(frames, "adversarial_attention", adversarial_overview)},
            axis="from-zero",
        ),
    ]
    lead = Markup("The questions of Jain &amp; Wallace (2019), <cite>Attention is not Explanation</cite>.")
    finding = _finding(frames["agreement"], content.random) if "agreement" in frames else ""
    return Page(sections, lead, finding)
