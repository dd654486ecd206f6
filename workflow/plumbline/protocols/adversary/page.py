"""The page of adversarial models: their distances from the base model, and those of other seeds."""

from dataclasses import replace

import numpy as np
import pandas as pd
from markupsafe import Markup

from plumbline.protocols.adversary.table import LARGEST_JSD, LARGEST_TVD, attefa_rows, attefa_score, one_selection
from plumbline.protocols.attention.bins import EVERY
from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.page import Page, Section, table_of
from plumbline.report.tables import (
    DASH,
    Table,
    TableCell,
    by_cell,
    number,
    numeric,
    spread,
    spread_on_axis,
    without_categories,
)
from plumbline.tables.chance import COLLAPSED

_ABSENT = TableCell(DASH, None, "faint")
# What identifies an adversary beside its model, of which most studies have one.
NAMES = ("adversary", "base seed")


def adversary_overview(adversary: pd.DataFrame) -> Table:
    """The test scores of each base model's adversaries, by the split that their epoch was chosen on."""
    keys = ["adversary", "objective", "strength", "selected_on"]
    rows = []
    for (dataset, model, *more), group in by_cell(without_categories(adversary), *keys):
        name, objective, strength, split = (cell.text for cell in more)
        defined = group[group["status"].isin(("ok", COLLAPSED))]
        rows.append(
            [
                dataset,
                model,
                TableCell(adversary_title(name, objective, float(strength))),
                TableCell(split),
                _seeds(group["status"]),
                spread_on_axis(defined["attefa"], 1),
                spread_on_axis(defined["tvd"], LARGEST_TVD),
                spread_on_axis(defined["jsd"], LARGEST_JSD),
                spread_on_axis(defined["f1"], 1),
                spread(defined["epoch"], 1),
            ]
        )
    caption = (
        "Difference between adversaries and their base model on the test split: mean over texts, ± standard deviation "
        "over the adversary's seeds, each on an axis from 0 to its maximum. TVD is the difference of the output, "
        "½\u00a0|Δp| for two classes, from 0 to 0.5; JSD that of the attention, from 0 to ln 2; AtteFa is the ratio of "
        "TVD to JSD, each divided by its maximum, and at most 1. AtteFa near 0: other attention gives the same output, "
        "so attention is not faithful. Near 1: it does not. “chosen on” is the split on which the epoch has the lowest "
        "loss; the published AtteFa used the test split, which favours the adversary. If F1 is far below that of the "
        "base model, the adversary failed to reproduce the output, and its AtteFa means little."
    )
    if any("diverged" in row[4].text for row in rows):
        caption += " Seeds whose training diverged are excluded from the means."
    if any(COLLAPSED in row[4].text for row in rows):
        caption += (
            " Seeds that collapsed predict the same class for every test text; they are included, as in the published "
            "study, but their score means that the search failed, not that attention is faithful."
        )
    columns = ["dataset", "model", "adversary", "chosen on", "seeds", "AtteFa", "TVD", "JSD", "F1", "epoch"]
    return Table(caption, columns, rows, frozenset(range(4, len(columns))))


def adversary_title(adversary: str, objective: str, strength: float | None) -> str:
    """The config's name of an adversary with its objective, if that differs, and λ."""
    name = adversary if adversary == objective else f"{adversary} ({objective})"
    return name if strength is None or np.isnan(strength) else f"{name}, λ\u00a0=\u00a0{strength:g}"


def _seeds(statuses: pd.Series) -> TableCell:
    """The number of seeds, and of those that diverged, which are in no mean, or collapsed."""
    collapsed = int((statuses == COLLAPSED).sum())
    failures = {"diverged": int((statuses != "ok").sum()) - collapsed, COLLAPSED: collapsed}
    failed = [f"{count} {failure}" for failure, count in failures.items() if count]
    count = len(statuses)
    return TableCell(", ".join([f"{count}", *failed]), count, "bad") if failed else numeric(count, 0)


def seed_variance_overview(seed_variance: pd.DataFrame) -> Table:
    """The distance of a block's other seeds from its base seed."""
    frame = without_categories(seed_variance)
    frame = frame[frame["max_attention_bin"] == EVERY]
    rows = []
    for (*names, base), group in by_cell(frame, "base_seed"):
        rows.append(
            [
                *names,
                replace(base, sort=float(base.text)),
                numeric(len(group), 0),
                numeric(group["n"].mean(), 0),
                spread_on_axis(group["tvd_mean"], LARGEST_TVD),
                spread_on_axis(group["jsd_mean"], LARGEST_JSD),
            ]
        )
    caption = (
        "How much the output and the attention of a model change with the seed alone: mean over texts of TVD, "
        "½\u00a0|Δp| for two classes, and of JSD between a base seed and each other seed, ± standard deviation over the"
        " other seeds, on axes from 0 to 0.5 and from 0 to ln 2. An adversary has found other attention only if its JSD"
        " is larger than this."
    )
    columns = ["dataset", "model", "base seed", "other seeds", "texts", "TVD", "JSD"]
    return Table(caption, columns, rows, frozenset(range(2, len(columns))))


def comparison_overview(
    adversary: pd.DataFrame,
    seed_variance: pd.DataFrame | None = None,
    performance: pd.DataFrame | None = None,
    constant_output: pd.DataFrame | None = None,
) -> Table:
    """AtteFa's adversaries next to what else differs from the same base model: adversaries without a reward for other
    attention, other seeds and the best constant output. No rows if the study has none of them."""
    frame, base = without_categories(adversary), ["dataset", "variant", "model", "base_seed"]
    scores = pd.DataFrame(columns=[*base, "f1"])
    if performance is not None:
        scores = without_categories(performance).rename(columns={"seed": "base_seed", "value": "f1"})
        scores = scores[(scores["split"] == "test") & (scores["metric"] == "f1")][
            scores.columns.intersection([*base, "f1"])
        ]
    seeds = pd.DataFrame(columns=[*base, "tvd", "jsd", "f1", "status"])
    if seed_variance is not None:
        seeds = without_categories(seed_variance).rename(columns={"tvd_mean": "tvd", "jsd_mean": "jsd"})
        own_score = scores.rename(columns={"base_seed": "seed"})
        seeds = seeds[seeds["max_attention_bin"] == EVERY].merge(own_score, "left", [*base[:3], "seed"])
    constants = pd.DataFrame(columns=[*base, "tvd", "status"])
    if constant_output is not None:
        constants = without_categories(constant_output)
    free = frame[(frame["objective"] == "wiegreffe-pinter") & (frame["strength"] == 0)]
    rows, several = [], free["adversary"].nunique() > 1
    for cells, own in by_cell(attefa_rows(frame), "adversary", "base_seed"):
        of_base = own[base].iloc[0]
        unrewarded, others, constant, score = (
            part[(part[base] == of_base).all(axis=1)] for part in (free, seeds, constants, scores)
        )
        compared = [
            *(
                (f"no reward ({name})" if several else "no reward", one_selection(runs))
                for name, runs in unrewarded.groupby("adversary")
            ),
            *([("other seeds", others)] if len(others) else []),
            *([("best constant", constant)] if len(constant) else []),
        ]
        if not compared:
            continue
        succeeded = own[own["status"] == "ok"]
        rows.append(
            [*cells, TableCell("AtteFa"), _seeds(own["status"]), *_distances(own), spread(own["attefa"]), _ABSENT]
        )
        for title, runs in compared:
            known = runs[runs["status"] == "ok"]
            score_then = attefa_score(known["tvd"].mean(), own["jsd"]).mean() if len(known) else None
            larger = int((succeeded["tvd"] > known["tvd"].max()).sum())
            counted = _ABSENT
            if len(known) and len(succeeded):
                counted = TableCell(f"{larger} of {len(succeeded)}", larger / len(succeeded))
            trained = _seeds(runs["status"]) if "jsd" in runs else _ABSENT
            row = [TableCell(title), trained, *_distances(known), numeric(score_then, 3), counted]
            rows.append([*cells, *row])
        if len(score):
            rows.append(
                [*cells, TableCell("base model"), _ABSENT, _ABSENT, _ABSENT, spread(score["f1"]), _ABSENT, _ABSENT]
            )
    caption = (
        "A score above 0 need not be the price of other attention, because no two trainings give the same output. Rows "
        "“no reward” show adversaries of Wiegreffe & Pinter with strength 0, whose objective does not reward other "
        "attention. Rows “other seeds” show the same model trained from other seeds (protocol seed_variance). Rows "
        "“best constant” show the one output for all texts that is nearest to the base model: an adversary that is "
        "no nearer does no better than one that ignores the text, and its score measures how much the base model’s "
        "output varies. The AtteFa of these rows is what their TVD would give with the JSD of AtteFa’s adversaries. "
        "“larger TVD” counts AtteFa’s adversaries whose TVD exceeds the largest in the row; those that collapsed are "
        "not counted. Rows “no reward” leave out adversaries that collapsed or diverged. An adversary has found "
        "other attention only if its JSD is larger than that of other seeds, and has failed if its F1 is far below "
        "the base model’s. Mean ± standard "
        "deviation over seeds, on test; other seeds on the explained texts."
    )
    columns = [
        "dataset", "model", "adversary", "base seed", "compared", "seeds", "TVD", "JSD", "F1", "AtteFa", "larger TVD",
    ]  # fmt: skip
    # Names that are the same in all rows are left out.
    kept = [i for i, name in enumerate(columns) if name not in NAMES or len({row[i].text for row in rows}) > 1]
    shown = [columns[i] for i in kept]
    numbers = frozenset(i for i, name in enumerate(shown) if name not in ("dataset", "model", "adversary", "compared"))
    return Table(caption, shown, [[row[i] for i in kept] for row in rows], numbers)


def _distances(runs: pd.DataFrame) -> list[TableCell]:
    columns = ("tvd", "jsd", "f1")
    return [spread(runs[name].astype(float)) if len(runs) and name in runs else _ABSENT for name in columns]


def _finding(adversary: pd.DataFrame) -> str:
    means = attefa_rows(without_categories(adversary)).groupby(["dataset", "model"])["attefa"].mean().dropna()
    ends = dict.fromkeys([number(means.min()), number(means.max())])
    return f"AtteFa: {' to '.join(ends)} (1 is the most faithful)." if len(means) else ""


@page("adversaries", title="Adversaries", tables=["adversary", "seed_variance", "constant_output"], order=40)
def adversaries_page(content: Content) -> Page:
    """Can a model attend to other words and give the same output, and how much does attention vary between seeds?"""
    frames = content.tables
    sections = [
        Section(
            "models",
            "Adversarial models",
            "Can a model attend to other words and give the same output? Adversaries have the architecture of a base "
            "model and are trained to reproduce its output on each text, with attention as different as possible. "
            "Where they succeed, the output does not depend on the base model’s attention.",
            {"adversary": table_of(frames, "adversary", adversary_overview)},
            axis="from-zero",
        ),
        Section(
            "comparison",
            "What the score is compared with",
            "How much of an AtteFa score is the price of other attention?",
            {
                "adversary-comparison": table_of(
                    frames,
                    "adversary",
                    lambda frame: comparison_overview(
                        frame, *map(frames.get, ("seed_variance", "performance", "constant_output"))
                    ),
                )
            },
        ),
        Section(
            "seeds",
            "Seed variance",
            "How much does attention vary between seeds? The same model is trained on the same data from another "
            "seed, and the two are compared on each text.",
            {"seed-variance": table_of(frames, "seed_variance", seed_variance_overview)},
            axis="from-zero",
        ),
    ]
    lead = (
        "The questions of Wiegreffe &amp; Pinter (2019), <cite>Attention is not not Explanation</cite>, and of AtteFa, "
        "Amini &amp; Kosseim (2022), <cite>How (Un)Faithful is Attention?</cite>"
    )
    return Page(sections, Markup(lead), _finding(frames["adversary"]) if "adversary" in frames else "")
