"""The report's page on masking and retraining: faithfulness, leakage by the masks, and the cost."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from markupsafe import Markup

from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.findings import by_measure
from plumbline.report.page import Page, Section, table_of
from plumbline.report.tables import Table, TableCell, number, numeric, spread, without_categories

CURVE = ["dataset", "model", "measure", "strategy", "unit", "metric"]


@dataclass(frozen=True)
class IntervalCell(TableCell):
    """A cell with an interval on the small axis, from `low` to `high`, that need not be symmetric."""

    low: float = 0.0
    high: float = 0.0


def faithfulness_overview(faithfulness: pd.DataFrame) -> Table:
    """Faithfulness of each curve, clipped and unclipped, and the score with everything masked."""
    rows = []
    for line in without_categories(faithfulness).sort_values(CURVE, kind="stable").to_dict("records"):
        ours = [line[key] for key in ("faithfulness", "ci_low", "ci_high")]
        raw, floor = ([line[f"{key}{end}"] for end in ("", "_ci_low", "_ci_high")] for key in ("unclipped", "floor"))
        reason = "undefined" if pd.isna(line["reason"]) else str(line["reason"])
        clipped = interval_on_axis(*ours) if np.isfinite(ours[0]) else TableCell(reason, None, "faint")
        same = np.isfinite(raw[0]) and np.array_equal(raw, ours, equal_nan=True)
        unclipped = TableCell("same", raw[0], "faint") if same else with_interval(*raw)
        keys = [TableCell(str(line[key]).replace("_", " ")) for key in CURVE]
        rows.append([*keys, numeric(line["n_seeds"], 0), clipped, unclipped, with_interval(*floor)])
    caption = (
        "Faithfulness is the area between the curve of masking at random and that of the measure, as a share of the "
        "area between random and everything masked; higher is better. “faithfulness” is the mean over seeds with its "
        "95\u00a0% interval, each seed clipped to the axis from −1 to 1; “unclipped” is the same without clipping; "
        "“everything masked” is the score with all words masked. Intervals are BCa bootstraps over seeds: too narrow "
        "with five seeds or fewer, and left out with fewer than three."
    )
    columns = [*CURVE, "seeds", "faithfulness", "unclipped", "everything masked"]
    return Table(caption, columns, rows, frozenset(range(6, len(columns))))


def with_interval(value: float, low: float, high: float) -> TableCell:
    """A number, followed by its interval in brackets if it has one."""
    ends = f" [{number(low, 3)}, {number(high, 3)}]" if np.isfinite([low, high]).all() else ""
    return TableCell(number(value, 3) + ends, float(value) if np.isfinite(value) else None)


def interval_on_axis(value: float, low: float, high: float) -> TableCell:
    """A number with its interval, also drawn on an axis from −1 to 1."""
    cell = with_interval(value, low, high)
    ends = [low, high] if np.isfinite([low, high]).all() else [value, value]
    at, *ends = (float(np.clip((end + 1) / 2, 0, 1)) for end in (value, *ends))
    return IntervalCell(cell.text, cell.sort, at=at, low=ends[0], high=ends[1])


def leakage_overview(roar: pd.DataFrame, faithfulness: pd.DataFrame | None) -> Table:
    """Scores of models that see only which words are masked, by the metrics of `faithfulness`; may be empty."""
    frame = without_categories(roar)
    frame = frame[(frame["trained_on"] == "positions") & (frame["status"] == "ok")].dropna(subset=["value"])
    if faithfulness is not None:
        frame = frame.merge(without_categories(faithfulness)[["dataset", "metric"]].drop_duplicates())
    rows = []
    for curve, group in frame.groupby(CURVE):
        by_level = group.pivot_table(index="seed", columns="level", values="value")
        masked = by_level.drop(columns=0, errors="ignore")
        if masked.empty or 0 not in by_level:
            continue
        best = int(masked.columns[int(masked.mean().argmax())])
        rows.append(
            [
                *(TableCell(str(word).replace("_", " ")) for word in curve),
                numeric(len(by_level), 0),
                spread(by_level[0]),
                spread(by_level[best]),
                TableCell(f"{best} %" if curve[4] == "relative" else str(best), best),
                spread(by_level[best] - by_level[0]),
            ]
        )
    caption = (
        "Scores of models that see only which words are masked: with nothing masked, which is chance, and at the "
        "masking level with the highest score; mean ± standard deviation over seeds. Above chance, the masks alone "
        "reveal the class, so the curves of masked words are too high and faithfulness is too low. The row of random "
        "shows how far the best of several levels is above chance by luck."
    )
    columns = [*CURVE, "seeds", "nothing masked", "best", "at level", "above chance"]
    return Table(caption, columns, rows, frozenset(range(6, len(columns))))


def cost_overview(timings: pd.DataFrame) -> Table:
    """Seconds per masking level of each measure, for retraining and for the importances of the next level."""
    frame = without_categories(timings[timings["event"].isna()])
    rules = {"retrain": "training", "attribute": "attribution"}
    frame = frame[frame["rule"].isin(rules) & frame["variant"].str.startswith(("unmasked", "roar", "recursive"))]
    levels = frame.groupby(["dataset", "model", "measure", "rule", "variant"])["seconds"].sum()
    groups = levels.groupby(level=[0, 1, 2, 3])
    means, counts = (table.unstack("rule").reindex(columns=list(rules)) for table in (groups.mean(), groups.size()))
    rows = [
        [*map(TableCell, cell), numeric(counts["retrain"][cell], 0), *(numeric(means[rule][cell], 1) for rule in rules)]
        for cell in means.index
    ]
    caption = (
        "Seconds per masking level for all seeds together, mean over levels: “training” is retraining, “attribution” "
        "the importances that rank the words. Jobs shared by several curves are counted once."
    )
    columns = ["dataset", "model", "measure", "levels trained", "training", "attribution"]
    return Table(caption, columns, rows, frozenset(range(3, 6)))


def faithfulness_finding(faithfulness: pd.DataFrame) -> str:
    """The mean faithfulness of each measure, in a sentence."""
    rows = without_categories(faithfulness)
    means = by_measure(rows["faithfulness"], rows["measure"])
    return f"Mean faithfulness (0: as masking at random, 1 at most): {means}." if means else ""


@page("masking", title="Masking", tables=["roar", "faithfulness", "sparsity", "synthetic_roar"], order=50)
def masking_page(content: Content) -> Page:
    """Does masking important words lower the score more than masking at random, after retraining?"""
    frames = content.tables
    sections = [
        Section(
            "roar",
            "Faithfulness",
            Markup(
                "An increasing percentage or number of words is masked, and models are retrained on the masked texts. "
                "The higher the faithfulness, the more masking by the measure lowers the score compared with masking "
                "at random. Near 0 the measure is no better than random. Below 0 it is worse, or its masks reveal the "
                "class. "
                '<a href="explorer.html">The explorer shows the masked texts.</a>'
            ),
            {"faithfulness": table_of(frames, "faithfulness", faithfulness_overview)},
        ),
        Section(
            "leaking",
            "Do the masks reveal the class?",
            tables={
                "leakage": table_of(frames, "roar", lambda frame: leakage_overview(frame, frames.get("faithfulness")))
            },
        ),
        Section("cost", "Cost", tables={"costs": table_of(frames, "timings", cost_overview)}),
    ]
    finding = faithfulness_finding(frames["faithfulness"]) if "faithfulness" in frames else ""
    return Page(sections, "ROAR and Recursive ROAR, as in Madsen et al. (2022).", finding)
