"""The report's page of the scorecard: every measure by every criterion, and the agreement between criteria."""

from collections import Counter
from dataclasses import replace
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd

from plumbline.protocols.criteria import ARROWS
from plumbline.protocols.roar.page import interval_on_axis, with_interval
from plumbline.protocols.scorecard.meta import relative_ranks
from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.page import Page, Section, table_of
from plumbline.report.tables import DASH, Table, TableCell, by_cell, number, numeric, without_categories

BLOCK = ["dataset", "variant", "model"]


def scorecard_overview(scorecard: pd.DataFrame) -> Table:
    """A row for each measure of a dataset and model, a column for each criterion."""
    frame = without_categories(scorecard)
    criteria = dict(zip(frame["criterion"], frame["direction"], strict=True))
    others = set(frame["criterion"][~frame["faithfulness"].astype(bool)])
    reasons = list(dict.fromkeys(frame[frame["status"] != "ok"]["reason"].dropna()))
    frame["rank"] = relative_ranks(frame)
    rows = []
    for names, group in by_cell(frame, "measure", sort=False):
        lines = {line["criterion"]: line for line in group.to_dict("records")}
        cells = [_cell(lines[name], reasons) if name in lines else TableCell(DASH, None, "faint") for name in criteria]
        rows.append([*names, *cells])
    caption = (
        "Mean over seeds with Student's 95\u00a0% interval, if there are three or more seeds. ↑: higher is better, ↓: "
        "lower is better. The stronger the background, the better the rank of the measure among three or more measures "
        "of the same dataset and model. Letters refer to the reasons for missing values below the table."
    )
    if others:
        caption += " †: not about faithfulness, and not compared with other criteria below."
    if twins := _twins(frame):
        caption += (
            f" Measures with the same order of words are counted once in agreement and between criteria: {twins}."
        )
    marks = {name: f"{ARROWS[better]} †" if name in others else ARROWS[better] for name, better in criteria.items()}
    columns = ["dataset", "model", "measure", *(f"{name} {mark}" for name, mark in marks.items())]
    return Table(caption, columns, rows, frozenset(range(3, len(columns))), reasons)


def _twins(frame: pd.DataFrame) -> str:
    """Pairs of measures that rank words in the same order, and in how many of the cells that have both."""
    explained = frame.drop_duplicates([*BLOCK, "measure"])
    pairs = Counter(explained.dropna(subset="twin_of")[["measure", "twin_of"]].itertuples(index=False, name=None))
    return "; ".join(
        f"{measure} like {twin} in {count} of {len(_cells(explained, measure) & _cells(explained, twin))}"
        for (measure, twin), count in pairs.items()
    )


def _cells(frame: pd.DataFrame, measure: str) -> set[tuple[str, ...]]:
    return set(frame.loc[frame["measure"] == measure, BLOCK].itertuples(index=False, name=None))


def _cell(line: dict[Any, Any], reasons: list[str]) -> TableCell:
    if line["status"] != "ok":
        return _missing(line["reason"], reasons)
    cell = with_interval(line["value"], line["ci_low"], line["ci_high"])
    title = f"{line['n_seeds']} seed" + ("" if line["n_seeds"] == 1 else "s")
    title += "" if pd.isna(line["reason"]) else f"; {line['reason']}"
    return replace(cell, title=title, tint=float(line["rank"]) if np.isfinite(line["rank"]) else None)


def _missing(reason: str, reasons: list[str]) -> TableCell:
    """A dash with the letter of the reason among the notes."""
    return TableCell(f"{DASH} {letter(reasons.index(reason))}", None, "faint", title=reason)


def letter(i: int) -> str:
    """a, b … z, then aa, ab …"""
    first, last = divmod(i, len(ascii_lowercase))
    return (letter(first - 1) if first else "") + ascii_lowercase[last]


def meta_evaluation_overview(meta_evaluation: pd.DataFrame) -> Table:
    """A row for every two criteria, those that could not be compared last."""
    frame = without_categories(meta_evaluation)
    reasons = list(dict.fromkeys(frame[frame["status"] != "ok"]["reason"].dropna()))
    rows = []
    for line in frame.sort_values("status", key=lambda status: status != "ok", kind="stable").to_dict("records"):
        known = line["status"] == "ok"
        texts = {"variant": "the same texts", "dataset": "plain and manipulated"}.get(line["matched"], DASH)
        tau = line["tau"], line["ci_low"], line["ci_high"]
        pair = TableCell(str(line["criterion_a"])), TableCell(str(line["criterion_b"]))
        agreement = interval_on_axis(*tau) if known else _missing(line["reason"], reasons)
        rows.append([*pair, agreement, numeric(line["n_cells"], 0), TableCell(texts if known else DASH)])
    caption = (
        "Kendall τ between the rankings of every two criteria: mean over datasets and models, on an axis from −1 to 1, "
        "with a 95\u00a0% interval by resampling. At 1 both rank the measures in the same order. Criteria are compared "
        "on the same texts or, if they have none in common, on the plain and the manipulated texts of a dataset. "
        "Letters refer to the reasons for missing values below the table."
    )
    columns = ["criterion", "other criterion", "τ", "datasets and models", "compared on"]
    return Table(caption, columns, rows, frozenset((2, 3)), reasons)


def _finding(meta_evaluation: pd.DataFrame | None) -> str:
    taus = pd.Series(dtype=float) if meta_evaluation is None else without_categories(meta_evaluation)["tau"].dropna()
    pairs = "one pair" if len(taus) == 1 else f"{len(taus)} pairs"
    return f"Mean Kendall τ between the rankings of {pairs} of criteria: {number(taus.mean())}." if len(taus) else ""


@page("scorecard", title="Scorecard", group="", tables=["scorecard", "meta_evaluation"], order=10)
def scorecard_page(content: Content) -> Page:
    """Every measure by every criterion, and whether the criteria agree."""
    frames = content.tables
    sections = [
        Section(
            "criteria",
            "Measures by criteria",
            "The value of each measure by each criterion. A criterion is a metric of a protocol. Values are not "
            "comparable across columns, and two criteria need not agree; the background shows which measure a "
            "criterion ranks best.",
            {"scorecard": table_of(frames, "scorecard", scorecard_overview)},
            axis="lettered",
        ),
        Section(
            "meta-evaluation",
            "Do the criteria agree?",
            "A high τ means that two criteria rank the measures alike, not that they are right: only the ground truth "
            "is known to be right, on data made for it. Intervals resample the datasets if there are three or more, "
            "otherwise the models if there are three or more, and the seeds if there are three or more. They are "
            "rough with few of them; without any there is no interval.",
            {"meta": table_of(frames, "meta_evaluation", meta_evaluation_overview)},
            axis="lettered",
        ),
    ]
    return Page(sections, finding=_finding(frames.get("meta_evaluation")))
