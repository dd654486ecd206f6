"""The report's page of trust: which criterion agrees with which kind of known truth, in sentences and in a table."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup, escape

from plumbline.protocols.roar.page import interval_on_axis
from plumbline.protocols.scorecard.trust import EVERY, EVERY_FOUND, SIGNIFICANT, sign_of
from plumbline.protocols.sensitivity.table import smallest_seen
from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.page import Page, Section, table_of
from plumbline.report.tables import Table, TableCell, number, numeric, without_categories

# What an interval of τ shows, in the order in which the sentences state it.
VERDICTS = ("agrees with", "contradicts", "has no clear relation to")


# By the sign of τ.
VERDICT = {1: VERDICTS[0], -1: VERDICTS[1], 0: VERDICTS[2]}


def _taus(lines: Sequence[dict[Any, Any]]) -> str:
    return ", ".join(
        f"{line['truth']} (τ {number(line['tau'])} [{number(line['ci_low'])}, {number(line['ci_high'])}], p "
        f"{number(line['p_value'], 3)})"
        for line in lines
    )


def trust_sentences(trust: pd.DataFrame, sensitivity: pd.DataFrame | None) -> list[str]:
    """A sentence about each criterion: the kinds of truth that it agrees with, and the permuted share that it sees."""
    rows = without_categories(trust)
    rows = rows[(rows["status"] == "ok") & ~rows["truth"].isin([EVERY, EVERY_FOUND])].dropna(
        subset=["ci_low", "ci_high"]
    )
    ladders = {} if sensitivity is None else _ladders(without_categories(sensitivity))
    sentences = []
    for criterion, own in rows.groupby("criterion", sort=False):
        judged = list(zip(sign_of(own).map(VERDICT), own.to_dict("records"), strict=True))
        parts = [
            f"{name} {_taus(lines)}" for name in VERDICTS if (lines := [line for said, line in judged if said == name])
        ]
        ladder = f"; {ladders[str(criterion)]}" if str(criterion) in ladders else ""
        sentences.append(f"{criterion} {'; it '.join(parts)}{ladder}.")
    return sentences


def _ladders(sensitivity: pd.DataFrame) -> dict[str, str]:
    """What each criterion sees of degraded measures, with the most seeds."""
    tested = sensitivity[(sensitivity["status"] == "ok") & (sensitivity["share"] > 0)].dropna(subset="power")
    tested = tested[tested["n_seeds"] == tested["n_seeds"].max()]
    smallest = smallest_seen(tested, ["criterion"]).droplevel("n_seeds")
    ordered = tested.groupby("criterion")["in_order"].all()
    sentences = {}
    for criterion, share in smallest.items():
        order = f"{'ranks' if ordered[criterion] else 'does not rank'} all permuted shares in order"
        seen = "no permuted share" if pd.isna(share) else f"a permuted share of {share:g}"
        sentences[str(criterion)] = f"it {order} and detects {seen}"
    return sentences


def trust_overview(trust: pd.DataFrame) -> Table:
    """A row for each criterion and kind of truth, and of those on equal terms for each model, if there are several."""
    frame = without_categories(trust)
    frame = frame[frame["status"] == "ok"]
    keys = ["criterion", "truth", *(["model"] if "model" in frame and frame["model"].nunique() > 1 else [])]
    counts = [name for name in ("n_measures", "n_datasets", "n_models", "n_cells") if name in frame]
    rows = [
        [
            *(TableCell(line[key]) for key in keys),
            interval_on_axis(line["tau"], line["ci_low"], line["ci_high"]),
            numeric(line["p_value"], 3),
            *(numeric(line[count], 0) for count in counts),
            TableCell(line["resampled"].replace(", ", " and ") or "nothing"),
        ]
        for line in frame.to_dict("records")
    ]
    caption = (
        "Kendall τ between the rankings of the measures by a criterion and by a known truth, on an axis from −1 to 1, "
        "with its 95\u00a0% interval; higher is better. “cells” counts combinations of dataset, variant and model. "
        "“resampled” says whether the interval covers other datasets, models or seeds, “p” how "
        "often τ is as far from 0 if the names of the measures are exchanged."
    )
    caption += _expected(frame["p_value"].dropna())
    columns = [*keys, "τ", "p", *(count.removeprefix("n_") for count in counts), "resampled"]
    return Table(caption, columns, rows, frozenset(range(len(keys), len(keys) + 2 + len(counts))))


def _expected(tested: pd.Series) -> str:
    """How many p are small, and how many would be so by chance, since none is corrected for their number."""
    if tested.empty:
        return ""
    small, chance = int((tested <= SIGNIFICANT).sum()), number(len(tested) * SIGNIFICANT, 1)
    return (
        f" {small} of {len(tested)} p are at most {SIGNIFICANT}; if no criterion were related to the truth, {chance} "
        "or fewer would be in the mean, since p is not corrected for the number of comparisons."
    )


@page("trust", title="Trust", group="", tables=["trust", "trust_common"], order=12)
def trust_page(content: Content) -> Page:
    """Which criteria agree with which kind of known truth?"""
    frames = content.tables
    sentences = trust_sentences(frames["trust"], frames.get("sensitivity"))
    listed = Markup("<ul>{}</ul>").format(Markup("").join(Markup("<li>{}</li>").format(escape(s)) for s in sentences))
    sections = [
        Section(
            "verdicts",
            "Conclusions",
            "A criterion agrees with a truth if the whole 95\u00a0% interval of τ is above 0 and p is at most "
            f"{SIGNIFICANT}, and contradicts it if the whole interval is below 0 and p is at most {SIGNIFICANT}. The "
            "interval is over seeds (or datasets or models), p of a permutation test over measures: how often τ is as "
            "far from 0 if the names of the measures are exchanged. Three measures are too few. A truth is "
            "known only for texts made for it: agreement on these does not prove that the criterion is right on "
            "other texts.",
            html=listed if sentences else "",
        ),
        Section(
            "truths",
            "Criteria by kinds of truth",
            tables={"trust": table_of(frames, "trust", trust_overview)},
        ),
        Section(
            "equal-terms",
            "On equal terms",
            "Above, criteria differ in the measures and in the texts that they rank. Compare criteria with each other "
            "here: all rank the same measures on the same plain texts, and the truth is that of the manipulated ones. "
            "They may still differ in the shares of words that they remove, the class that they look at and the number "
            "of texts.",
            tables={"common": table_of(frames, "trust_common", trust_overview)},
        ),
    ]
    agreeing = sum(VERDICTS[0] in sentence and VERDICTS[1] not in sentence for sentence in sentences)
    finding = f"{agreeing} of {len(sentences)} criteria agree with some kind of known truth and contradict none."
    return Page(sections, finding=finding if sentences else "")
