"""What a study found, in sentences: which measures lead, whether they beat chance, which criteria disagree, and what
is undecided. There is no sentence about what the study does not have."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from plumbline.protocols.bootstrap import FEWEST, SMALLEST_SPREAD, student_interval
from plumbline.protocols.scorecard.meta import FEWEST_RANKED, RESOLUTION, Ranking, Rankings, rankings
from plumbline.protocols.scorecard.trust import EVERY, EVERY_MODEL, TRUTHS, sign_of
from plumbline.report.tables import number, without_categories
from plumbline.tables.chance import ABOVE_CHANCE, at_chance

# The number of measures or criteria that a sentence names.
MOST = 4
OVER_SEEDS = "95\u00a0% interval of the difference over seeds above 0"


def verdict(tables: Mapping[str, pd.DataFrame], random: str) -> list[str]:
    """What the tables of a study show. `random` is the name of the random measure, or empty."""
    sentences = []
    if "scorecard" in tables:
        card = without_categories(tables["scorecard"])
        sentences += [_leads(rankings(card, random)), _beyond_random(card, random)]
    if "meta_evaluation" in tables:
        sentences.append(_protocols(without_categories(tables["meta_evaluation"])))
    if "trust" in tables:
        sentences.append(
            _truth(*(without_categories(tables[name]) for name in ("trust", "trust_common") if name in tables))
        )
    if "performance" in tables:
        sentences.append(_left_out(without_categories(tables["performance"])))
    return [sentence for sentence in sentences if sentence]


class Gap(NamedTuple):
    """How much better one measure is than another by a criterion, over seeds; NaN ends without an interval."""

    measure: str
    mean: float
    low: float

    @classmethod
    def between(cls, ranking: Ranking, one: int, other: int) -> "Gap":
        """The gap between two measures of a ranking, by their index."""
        gaps = ranking.values[one] - ranking.values[other]
        # Equal gaps are of one model, not of several trained ones, and say nothing about others.
        low = student_interval(gaps)[0] if np.ptp(gaps) > SMALLEST_SPREAD else np.nan
        return cls(ranking.measures[one], float(ranking.means[one] - ranking.means[other]), low)


def _leads(found: Mapping[str, Rankings]) -> str:
    """How often each measure is the best of three or more, and how often seeds tell it from the second."""
    ranked = [
        (criterion, cell, ranking)
        for criterion, cells in found.items()
        for cell, ranking in cells.items()
        if len(ranking.measures) >= FEWEST_RANKED
    ]
    if not ranked:
        return ""
    gaps = [Gap.between(ranking, *np.argsort(-ranking.means, kind="stable")[:2]) for _, _, ranking in ranked]
    criteria, cells = (len({row[key] for row in ranked}) for key in (0, 1))
    made = f"by {_count(criteria, 'criterion', 'criteria')}"
    if cells > 1:
        made = f"in {len(gaps)} rankings ({made} on {cells} combinations of dataset, variant and model)"
    leading = Counter(gap.measure for gap in gaps if gap.mean > RESOLUTION).most_common()
    texts = [f"{measure} {_times(count)}" for measure, count in leading[:MOST]]
    if more := sum(count for _, count in leading[MOST:]):
        texts.append(f"other measures {_times(more)}")
    if ties := len(gaps) - sum(count for _, count in leading):
        texts.append(f"a tie {_times(ties)}")
    return f"The best measure {made}: {_listed(texts)}. {_certain(gaps)}"


def _certain(gaps: Sequence[Gap]) -> str:
    """How many leads the spread of seeds does not explain."""
    known = [gap for gap in gaps if not np.isnan(gap.low)]
    if not known:
        return (
            f"An interval over seeds needs {FEWEST} or more seeds that differ; without one it is undecided whether the "
            "best measure is really better than the second."
        )
    clear = sum(gap.low > RESOLUTION for gap in known)
    whole = "of them" if len(known) == len(gaps) else f"of the {len(known)} with {FEWEST} or more seeds that differ"
    return (
        f"It is significantly better than the second in {clear or 'none'} {whole} ({OVER_SEEDS}); otherwise it is "
        "undecided which is the best."
    )


def _beyond_random(card: pd.DataFrame, random: str) -> str:
    """How often each measure does better than random importances, by criteria that judge both."""
    gaps = []
    for cells in rankings(card, "").values():
        for ranking in cells.values():
            if random in ranking.measures:
                own = ranking.measures.index(random)
                gaps += [Gap.between(ranking, i, own) for i in range(len(ranking.measures)) if i != own]
    known = [gap for gap in gaps if not np.isnan(gap.low)]
    if not known:
        return ""
    tried = Counter(gap.measure for gap in known)
    better = Counter(gap.measure for gap in known if gap.low > RESOLUTION)
    total = f"{better.total()} of {_count(len(known), 'comparison', 'comparisons')}"
    text = f"Measures are significantly better than random importances in {total} ({OVER_SEEDS})"
    weakest = [measure for measure in tried if better[measure] < tried[measure]]
    weakest.sort(key=lambda measure: better[measure] / tried[measure])
    counts = {(better[measure], tried[measure]) for measure in tried}
    if len(counts) == 1 and weakest and len(tried) > 1:
        return f"{text}: each of them in {better[weakest[0]]} of {tried[weakest[0]]}."
    named = [f"{measure} ({better[measure]} of {tried[measure]})" for measure in weakest]
    return f"{text}; not always: {_some(named)}." if weakest else f"{text}."


def _protocols(meta: pd.DataFrame) -> str:
    """How many pairs of criteria agree, and which contradict each other; agreement with a known truth is another
    sentence."""
    truths = meta[["criterion_a", "criterion_b"]].isin(TRUTHS).any(axis=1)
    compared = meta[(meta["status"] == "ok") & ~truths]
    if compared.empty:
        return ""
    text = (
        f"The mean Kendall τ between the rankings of two criteria{' without a known truth' if truths.any() else ''} is "
        f"{number(compared['tau'].mean())} over {_count(len(compared), 'pair', 'pairs')}"
    )
    known = compared.dropna(subset=["ci_low", "ci_high"])
    agree, against = int((known["ci_low"] > 0).sum()), known[known["ci_high"] < 0].sort_values("tau")
    if known.empty:
        return f"{text}; there is no interval, so it is undecided which criteria disagree."
    rest = len(compared) - agree - len(against)
    text += f": {agree} agree (95\u00a0% interval above 0), {len(against)} contradict each other"
    text += f" and {rest} {'is' if rest == 1 else 'are'} undecided."
    if len(against):
        pairs = [
            f"{line['criterion_a']} with {line['criterion_b']} ({_tau(line)})" for line in against.to_dict("records")
        ]
        text += f" Contradictions: {_some(pairs)}."
    return text


def _truth(trust: pd.DataFrame, common: pd.DataFrame | None = None) -> str:
    """Which criteria rank measures like the known truth of manipulated texts, and which the other way round; if
    there is a comparison on equal terms, by that."""
    rows, terms, alone = _known(trust), "Kendall τ", trust[:0]
    equal = None if common is None else _known(common)
    if equal is not None and (equal["model"] == EVERY_MODEL).any():
        rows, alone = equal[equal["model"] == EVERY_MODEL], equal[equal["model"] != EVERY_MODEL]
        terms = f"On equal terms (the same {rows['n_measures'].max():g} measures on plain texts), Kendall τ"
    agree = rows[sign_of(rows) > 0].sort_values("tau", ascending=False)
    against = rows[sign_of(rows) < 0].sort_values("tau")
    if rows.empty:
        return ""
    undecided = rows.drop([*agree.index, *against.index])
    parts = []
    for sign, lines in (("above 0", agree), ("below 0", against), ("undecided", undecided)):
        if len(lines):
            named = [f"{line['criterion']} ({_tau_and_p(line)})" for line in lines.to_dict("records")]
            parts.append(f"{sign} for {_some(named)}")
    text = f"{terms} with the ranking by the known truth of manipulated texts is {'; '.join(parts)}."
    unlike = [
        f"{line['criterion']} of {line['model']} ({_tau_and_p(line)})"
        for lines, sign in ((agree, 1), (against, -1))
        for line in alone[(sign_of(alone) != sign) & alone["criterion"].isin(lines["criterion"])].to_dict("records")
    ]
    return f"{text} Not by each model alone: {_some(unlike)}." if unlike else text


def _known(trust: pd.DataFrame) -> pd.DataFrame:
    """The rows that compare a criterion with all manipulations and have an interval."""
    return trust[(trust["status"] == "ok") & (trust["truth"] == EVERY)].dropna(subset=["ci_low", "ci_high"])


def _left_out(performance: pd.DataFrame) -> str:
    """How many trained models are at chance."""
    judged = performance[(performance["metric"] == ABOVE_CHANCE) & (performance["split"] == "test")]
    if not (lost := len(at_chance(performance))):
        return ""
    are = "is hardly better than guessing and is" if lost == 1 else "are hardly better than guessing and are"
    return f"Of {_count(len(judged), 'trained model', 'trained models')}, {lost} {are} excluded from all findings."


def _tau(line: Mapping[Any, Any]) -> str:
    return f"τ {number(line['tau'])} [{number(line['ci_low'])}, {number(line['ci_high'])}]"


def _tau_and_p(line: Mapping[Any, Any]) -> str:
    return f"{_tau(line)}, p {number(line['p_value'], 3)}"


def _some(texts: Sequence[str], most: int = MOST) -> str:
    """The first texts, and the number of others."""
    more = len(texts) - most
    return _listed([*texts[:most], f"{more} more"] if more > 0 else texts)


def _listed(texts: Sequence[str]) -> str:
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def _count(number_of: int, one: str, several: str) -> str:
    return f"one {one}" if number_of == 1 else f"{number_of} {several}"


def _times(number_of: int) -> str:
    return "once" if number_of == 1 else f"{number_of} times"
