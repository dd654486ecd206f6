"""Which criterion to trust for what: its agreement with each kind of known truth."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from plumbline.protocols.scorecard.meta import RESAMPLES, Rankings, compare, mean_tau, rankings
from plumbline.protocols.scorecard.schemas import SCORECARD, TRUST
from plumbline.registry import table
from plumbline.store import TableSchema
from plumbline.tables.sources import Sources

# The criteria that compare importances with words that are known to decide.
GROUND_TRUTH, FOUND, EVIDENCE = "ground truth", "truth found", "evidence"
EVERY, EVERY_FOUND = "every manipulation", "every manipulation, found"


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
            if criterion not in (GROUND_TRUTH, FOUND, EVIDENCE):
                matched, cells = compare(ranked, known, generator, resamples)
                rows.append({"criterion": criterion, "truth": truth, "matched": matched} | mean_tau(cells, generator))
    return pd.DataFrame(rows, columns=TRUST.schema.names)


@table("trust", reads=["scorecard", "ground_truth"], params=["random", "manipulation_kinds"])
def trust_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """Agreement of each criterion with each kind of known truth."""
    return TRUST, trust_rows(sources.frame(SCORECARD), sources.facts["random"], sources.facts["manipulation_kinds"])
