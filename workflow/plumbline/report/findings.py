"""What the study found, a sentence for each page of the report."""

from collections.abc import Callable, Mapping

import pandas as pd

from plumbline.papers.page import verdict
from plumbline.protocols.adversary.table import scored
from plumbline.protocols.agreement.table import fewest_tokens, overall_taus, twins_once
from plumbline.report.tables import number, plain

# Of more measures the first are told.
MOST = 4


def findings(tables: Mapping[str, pd.DataFrame], random: str = "") -> dict[str, str]:
    """By the page, what the tables of these kinds say in a sentence; pages of which they say nothing have none.

    Neither the measure `random` nor models at chance have a part in what is said.
    """
    told = {page: say(plain(tables[kind]), random) for page, (kind, say) in SENTENCES.items() if kind in tables}
    return {page: sentence for page, sentence in told.items() if sentence}


def by_measure(values: pd.Series, measures: pd.Series) -> str:
    """The mean value of each measure, the highest first, in words."""
    means = values.groupby(measures).mean().dropna().sort_values(ascending=False, kind="stable")
    told = [f"{measure} {number(mean)}" for measure, mean in means.head(MOST).items()]
    more = len(means) - MOST
    return ", ".join(told) + (f" and {more} more" if more > 0 else "")


def _attention(agreement: pd.DataFrame, random: str) -> str:
    taus = fewest_tokens(overall_taus(agreement))
    taus = taus[(taus["measure_a"] == "attention") | (taus["measure_b"] == "attention")]
    others = taus["measure_a"].where(taus["measure_a"] != "attention", taus["measure_b"])
    taus, others = taus[others != random], others[others != random]
    return f"Mean τ with attention: {by_measure(taus['mean'], others)}." if len(taus) else ""


def _disagreement(agreement: pd.DataFrame, random: str) -> str:
    taus = fewest_tokens(overall_taus(agreement))
    taus = twins_once(taus[(taus["measure_a"] != random) & (taus["measure_b"] != random)])
    means = taus.groupby(["measure_a", "measure_b"])["mean"].mean().dropna()
    if means.empty:
        return ""
    pairs = "the one pair" if len(means) == 1 else f"{len(means)} pairs"
    return f"Mean τ over {pairs} of measures: {number(means.mean())}."


def _adversaries(adversary: pd.DataFrame, random: str) -> str:
    means = scored(adversary).groupby(["dataset", "model"])["attefa"].mean().dropna()
    ends = dict.fromkeys([number(means.min()), number(means.max())])
    return f"AtteFa {' to '.join(ends)}, 1 being the most faithful." if len(means) else ""


def _masking(faithfulness: pd.DataFrame, random: str) -> str:
    told = by_measure(faithfulness["faithfulness"], faithfulness["measure"])
    return f"Mean faithfulness: {told}." if told else ""


def _truth(ground_truth: pd.DataFrame, random: str) -> str:
    rows = ground_truth[ground_truth["truth"] & (ground_truth["class"] == "all") & (ground_truth["status"] == "ok")]
    rows = rows[rows["measure"] != random]
    told = by_measure(rows["above_region"], rows["measure"])
    return f"Importance on what decides, 0 as by chance, 1 all: {told}." if told else ""


def _erasure(erasure: pd.DataFrame, random: str) -> str:
    rows = erasure[(erasure["metric"] == "comprehensiveness") & erasure["ratio"].isna() & (erasure["status"] == "ok")]
    rows = rows[rows["measure"] != random]
    told = by_measure(rows["mean"], rows["measure"])
    return f"Mean comprehensiveness: {told}." if told else ""


def _scorecard(meta_evaluation: pd.DataFrame, random: str) -> str:
    taus = meta_evaluation["tau"].dropna()
    pairs = "one pair" if len(taus) == 1 else f"{len(taus)} pairs"
    return f"Mean τ between the rankings of {pairs} of criteria: {number(taus.mean())}." if len(taus) else ""


SENTENCES: dict[str, tuple[str, Callable[[pd.DataFrame, str], str]]] = {
    "scorecard": ("meta_evaluation", _scorecard),
    "attention": ("agreement", _attention),
    "disagreement": ("agreement", _disagreement),
    "adversaries": ("adversary", _adversaries),
    "masking": ("faithfulness", _masking),
    "truth": ("ground_truth", _truth),
    "erasure": ("erasure", _erasure),
    "reproduction": ("reproduction", lambda rows, _: verdict(rows)),
}
