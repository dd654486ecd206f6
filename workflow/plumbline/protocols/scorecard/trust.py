"""Which criterion to trust for what: its agreement with each kind of known truth."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from plumbline.config.variants import PLAIN
from plumbline.protocols.scorecard.meta import (
    FEWEST_RANKED,
    RESAMPLES,
    RankedCell,
    Rankings,
    compare,
    mean_tau,
    rankings,
)
from plumbline.protocols.scorecard.schemas import SCORECARD, TRUST, TRUST_COMMON
from plumbline.registry import table
from plumbline.store import TableSchema
from plumbline.tables.sources import Sources

# The criteria that compare importances with words that are known to decide.
TRUTHS = GROUND_TRUTH, FOUND, EVIDENCE = "ground truth", "truth found", "evidence"
EVERY, EVERY_FOUND = "every manipulation", "every manipulation, found"
EVERY_MODEL = "every model"
# The largest p of the permutation test over measures at which τ is not due to chance.
SIGNIFICANT = 0.05


def sign_of(rows: pd.DataFrame) -> pd.Series:
    """1 where τ is surely above 0, -1 where it is surely below, by both seeds and measures; otherwise 0."""
    sure = rows["p_value"] <= SIGNIFICANT
    return (sure & (rows["ci_low"] > 0)).astype(int) - (sure & (rows["ci_high"] < 0)).astype(int)


def known_truths(found: Mapping[str, Rankings], kinds: Mapping[str, str]) -> dict[str, Rankings]:
    """The rankings by each kind of known truth: by all manipulations, by each kind of them, and by evidence.

    Measures are ranked by the importance that they put on the truth, for all manipulations also by how much of it they
    rank first. `kinds` is the kind of manipulation of each variant.
    """
    truths: dict[str, Rankings] = {EVERY: dict(found.get(GROUND_TRUTH, {}))}
    truths[EVERY_FOUND] = dict(found.get(FOUND, {}))
    for cell, ranking in truths[EVERY].items():
        truths.setdefault(kinds[cell.variant], {})[cell] = ranking
    truths[EVIDENCE] = dict(found.get(EVIDENCE, {}))
    return {name: ranked for name, ranked in truths.items() if ranked}


def trust_rows(card: pd.DataFrame, random: str, kinds: Mapping[str, str], resamples: int = RESAMPLES) -> pd.DataFrame:
    """Rows of the table `trust`: Kendall τ between the rankings of each criterion and of each kind of truth."""
    found, generator = rankings(card, random), np.random.default_rng(0)
    rows = []
    for criterion, ranked in found.items():
        for truth, known in known_truths(found, kinds).items():
            if criterion not in TRUTHS:
                matched, cells = compare(ranked, known, generator, resamples, relabel=True)
                rows.append({"criterion": criterion, "truth": truth, "matched": matched} | mean_tau(cells, generator))
    return pd.DataFrame(rows, columns=TRUST.schema.names)


def common_rows(card: pd.DataFrame, random: str, kinds: Mapping[str, str], resamples: int = RESAMPLES) -> pd.DataFrame:
    """Rows of the table `trust_common`: as `trust`, but every criterion ranks the same measures on the same plain
    texts, those that all criteria rank. With several models there are also rows of each model alone."""
    shared, truths = _on_equal_terms(rankings(card, random), kinds)
    names = sorted({cell.model for ranked in shared.values() for cell in ranked})
    rows = []
    for model in (EVERY_MODEL, *(names if len(names) > 1 else [])):
        generator = np.random.default_rng(0)
        for criterion, ranked in shared.items():
            own = {cell: ranking for cell, ranking in ranked.items() if model in (EVERY_MODEL, cell.model)}
            measures = {measure for ranking in own.values() for measure in ranking.measures}
            for truth, known in truths.items():
                matched, cells = compare(own, known, generator, resamples, relabel=True)
                row = {"criterion": criterion, "truth": truth, "model": model, "matched": matched}
                rows.append(row | {"n_measures": len(measures)} | mean_tau(cells, generator))
    return pd.DataFrame(rows, columns=TRUST_COMMON.schema.names)


def common_difference(
    card: pd.DataFrame, random: str, kinds: Mapping[str, str], pair: tuple[str, str], truth: str = EVERY
) -> dict[str, Any]:
    """How much higher τ with a truth is, on equal terms, by the first criterion of a pair than by the second: the mean
    difference over cells and its interval, with the same seeds drawn for both if they have as many."""
    shared, truths = _on_equal_terms(rankings(card, random), kinds)
    first, second = (
        compare(shared[name], truths[truth], np.random.default_rng(0), RESAMPLES)[1] if name in shared else []
        for name in pair
    )
    others = {(cell.dataset, cell.model, cell.variants): cell for cell in second}
    both = [(one, others[key]) for one in first if (key := (one.dataset, one.model, one.variants)) in others]
    return mean_tau([one._replace(taus=one.taus - other.taus) for one, other in both], np.random.default_rng(0))


def _on_equal_terms(
    found: Mapping[str, Rankings], kinds: Mapping[str, str]
) -> tuple[dict[str, Rankings], dict[str, Rankings]]:
    """The criteria with the plain datasets, models and measures that all of them rank, and the truths by which measures
    are ranked on manipulated texts."""
    truths = {name: known for name, known in known_truths(found, kinds).items() if name != EVIDENCE}
    models = {(cell.dataset, cell.model) for known in truths.values() for cell in known}
    return _shared({name: _plain(ranked, models) for name, ranked in found.items() if name not in TRUTHS}), truths


def _plain(ranked: Rankings, models: set[tuple[str, str]]) -> Rankings:
    """A criterion's rankings of three measures or more on plain datasets, by these models."""
    return {
        cell: ranking
        for cell, ranking in ranked.items()
        if cell.variant == PLAIN and (cell.dataset, cell.model) in models and len(ranking.measures) >= FEWEST_RANKED
    }


def _shared(criteria: Mapping[str, Rankings]) -> dict[str, Rankings]:
    """Criteria with any rankings, each with the datasets, models and measures that all of them rank."""
    ranking = {name: ranked for name, ranked in criteria.items() if ranked}
    cells = sorted(set[RankedCell].intersection(*map(set, ranking.values()))) if ranking else []
    common = {
        cell: sorted(set[str].intersection(*(set(ranked[cell].measures) for ranked in ranking.values())))
        for cell in cells
    }
    return {name: {cell: ranked[cell].of(common[cell]) for cell in cells} for name, ranked in ranking.items()}


@table("trust", reads=["scorecard", "ground_truth"], params=["random", "manipulation_kinds"])
def trust_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """Agreement of each criterion with each kind of known truth."""
    return TRUST, trust_rows(sources.frame(SCORECARD), sources.facts["random"], sources.facts["manipulation_kinds"])


@table("trust_common", reads=["scorecard", "ground_truth"], params=["random", "manipulation_kinds"])
def trust_common_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """Agreement of each criterion with each kind of known truth, all on the same plain texts and measures."""
    card, facts = sources.frame(SCORECARD), sources.facts
    return TRUST_COMMON, common_rows(card, facts["random"], facts["manipulation_kinds"])
