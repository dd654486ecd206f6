"""Rankings of measures by the criteria of the scorecard, and whether protocols agree about measures."""

from collections.abc import Sequence
from itertools import combinations, permutations
from math import factorial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from plumbline.protocols.bootstrap import FEWEST
from plumbline.protocols.scorecard.schemas import META_EVALUATION, SCORECARD
from plumbline.registry import table
from plumbline.store import TableSchema
from plumbline.tables.sources import Sources

RESAMPLES = 1000
# A ranking of fewer measures carries next to no information.
FEWEST_RANKED = 3
# Smaller differences between means are within the error of single precision.
RESOLUTION = 1e-6
# The most measures whose orders are all tried in a permutation test, 5,040 of them.
MOST_EXCHANGED = 7


def relative_ranks(card: pd.DataFrame) -> pd.Series:
    """The rank of each row's measure among those of its criterion, dataset, variant and model, from 0, the worst, to 1,
    the best; NaN for fewer than three measures, and for degraded ones."""
    better = card["value"].astype(float) * card["direction"].map({"higher": 1.0, "lower": -1.0}).astype(float)
    cells = [card[key] for key in ("criterion", *RankedCell._fields)]
    groups = better.where(card["degraded_of"].isna()).groupby(cells, observed=True)
    count = groups.transform("count")
    return ((groups.rank() - 1) / (count - 1)).where(count >= FEWEST_RANKED)


class RankedCell(NamedTuple):
    """A dataset, variant and model in which measures are ranked."""

    dataset: str
    variant: str
    model: str


class Ranking(NamedTuple):
    """A criterion's values for the measures of a cell, larger is better: values [measures, seeds] for the seeds that
    all measures have, and the means [measures] over all seeds of each."""

    measures: list[str]
    values: np.ndarray
    means: np.ndarray

    def of(self, measures: Sequence[str]) -> "Ranking":
        """The ranking of some of the measures."""
        index = [self.measures.index(measure) for measure in measures]
        return Ranking(list(measures), self.values[index], self.means[index])

    def signs(self, common: Sequence[str], drawn: np.ndarray | None = None) -> np.ndarray:
        """Which measure of each pair is better, by the means over drawn seeds [draws, n]: [draws, pairs]; or over all
        seeds: [1, pairs]."""
        index = [self.measures.index(measure) for measure in common]
        rows = self.values[index]
        means = self.means[None, index] if drawn is None else rows[:, drawn % rows.shape[1]].mean(-1).T
        return _signs(means)


def _signs(means: np.ndarray) -> np.ndarray:
    """Which measure of each pair is better, by means [draws, measures]: [draws, pairs]."""
    gaps = np.stack([means[:, a] - means[:, b] for a, b in combinations(range(means.shape[1]), 2)], axis=1)
    return np.where(np.abs(gaps) > RESOLUTION, np.sign(gaps), 0.0)


Rankings = dict[RankedCell, Ranking]


def rankings(card: pd.DataFrame, random: str) -> dict[str, Rankings]:
    """The ranking of each criterion of faithfulness, dataset, variant and model, without degraded measures and the
    random one, which nearly all criteria rank last; of twins the first counts."""
    found: dict[str, Rankings] = {}
    judged = card[card["faithfulness"] & (card["status"] == "ok")]
    counted = (judged["measure"] != random) & judged["twin_of"].isna() & judged["degraded_of"].isna()
    defined = judged[counted]
    for key, rows in defined.groupby(["criterion", *RankedCell._fields], observed=True, sort=False):
        criterion, *block = map(str, key)
        sign = 1 if rows["direction"].iloc[0] == "higher" else -1
        seeds = rows["n_seeds"].min()
        ranked = sign * np.stack([np.asarray(numbers, dtype=np.float64)[:seeds] for numbers in rows["per_seed"]])
        means = sign * rows["value"].to_numpy(dtype=np.float64)
        found.setdefault(criterion, {})[RankedCell(*block)] = Ranking(
            rows["measure"].astype(str).tolist(), ranked, means
        )
    return found


def tau_of_signs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Kendall's τ-b of signs [..., pairs]; NaN where a or b is all ties."""
    pairs = np.sqrt((a != 0).sum(-1) * (b != 0).sum(-1))
    return np.divide((a * b).sum(-1), pairs, out=np.full(pairs.shape, np.nan), where=pairs > 0)


def meta_rows(card: pd.DataFrame, random: str, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Rows of the table `meta_evaluation`: Kendall τ between the rankings of every two criteria.

    It is the mean over datasets, variants and models, with an interval by resampling. Criteria without a common variant
    are compared across the variants of a dataset and model.
    """
    found, generator = rankings(card, random), np.random.default_rng(0)
    names = [name for name in dict.fromkeys(card["criterion"]) if name in found]
    rows = []
    for first, second in combinations(names, 2):
        matched, cells = compare(found[first], found[second], generator, resamples)
        rows.append({"criterion_a": first, "criterion_b": second, "matched": matched} | mean_tau(cells, generator))
    return pd.DataFrame(rows, columns=META_EVALUATION.schema.names)


class ComparedCell(NamedTuple):
    """The agreement of two criteria on a cell: its dataset, model and variants, its number of seeds, τ of all seeds,
    then of resampled ones, and τ with the measures of the first relabelled, if that was asked for."""

    dataset: str
    model: str
    variants: tuple[str, str]
    seeds: int
    taus: np.ndarray
    relabelled: np.ndarray | None


def compare(
    first: Rankings, second: Rankings, generator: np.random.Generator, resamples: int, relabel: bool = False
) -> tuple[str, list[ComparedCell]]:
    """The agreement of two criteria on each dataset, variant and model that both rank or, if there is none, on each
    dataset and model; and which of the two, `variant` or `dataset`.

    The same seeds are drawn for all cells, which often share models, and measures are relabelled alike in all.
    """
    matched, pairs = "variant", [(cell, cell) for cell in sorted(first.keys() & second.keys())]
    if not pairs:
        both = [(a, b) for a in sorted(first) for b in sorted(second)]
        matched, pairs = "dataset", [(a, b) for a, b in both if (a.dataset, a.model) == (b.dataset, b.model)]
    draws: dict[int, np.ndarray] = {}
    cells = []
    shared = {measure for a, b in pairs for measure in {*first[a].measures} & {*second[b].measures}}
    labels = Relabelled.of(shared) if relabel else None
    for a, b in pairs:
        seeds = max(first[a].values.shape[1], second[b].values.shape[1])
        if seeds not in draws:
            draws[seeds] = generator.integers(seeds, size=(resamples, seeds))
        common = sorted({*first[a].measures} & {*second[b].measures})
        if len(common) < FEWEST_RANKED:
            continue
        # A criterion with fewer seeds than the other is averaged over its own: drawn seeds wrap around.
        sides = [np.vstack([side.signs(common), side.signs(common, draws[seeds])]) for side in (first[a], second[b])]
        if not np.isnan((taus := tau_of_signs(*sides))[0]):
            relabelled = tau_of_signs(labels.signs(first[a], common), sides[1][:1]) if labels else None
            cells.append(ComparedCell(a.dataset, a.model, (a.variant, b.variant), seeds, taus, relabelled))
    return matched, cells


class Relabelled(NamedTuple):
    """Measures with their labels exchanged: orders [orders, measures], all of them if these are few."""

    measures: list[str]
    orders: np.ndarray

    @classmethod
    def of(cls, measures: set[str]) -> "Relabelled":
        """All orders of a few measures, or the given one and random ones, as many as a few measures have."""
        names = sorted(measures)
        if len(names) <= MOST_EXCHANGED:
            return cls(names, np.array(list(permutations(range(len(names)))), dtype=np.intp))
        drawn = np.random.default_rng(0).random((factorial(MOST_EXCHANGED) - 1, len(names))).argsort(1)
        return cls(names, np.vstack([np.arange(len(names)), drawn]))

    def signs(self, ranking: Ranking, common: Sequence[str]) -> np.ndarray:
        """Which measure of each pair is better, by means of a ranking with its labels exchanged: [orders, pairs]."""
        order = self.orders[:, [self.measures.index(measure) for measure in common]].argsort(1)
        means = ranking.means[[ranking.measures.index(measure) for measure in common]][order]
        return _signs(means)


def mean_tau(cells: Sequence[ComparedCell], generator: np.random.Generator) -> dict[str, Any]:
    """The mean τ over cells with an interval.

    Cells of one dataset share its texts, and often models, so datasets are resampled with all their cells, if there are
    three or more, otherwise models, if there are three or more of these; seeds too, if each cell has three or more.
    There is no interval if nothing can be resampled. It is as wide as the axis with the fewest units requires.
    """
    if not cells:
        reason = f"no dataset and model has {FEWEST_RANKED} measures that both rank"
        return {"n_cells": 0, "n_datasets": 0, "n_models": 0, "status": "missing", "reason": reason}
    taus = np.stack([cell.taus for cell in cells])
    names = {axis: [getattr(cell, axis) for cell in cells] for axis in ("dataset", "model")}
    counts = {axis: len(set(values)) for axis, values in names.items()}
    resampled = [axis for axis, count in counts.items() if count >= FEWEST][:1]
    fewest = [counts[axis] for axis in resampled]
    draws = np.repeat(taus[:, :1], taus.shape[1] - 1, axis=1)
    weights = np.ones(draws.shape)
    for axis in resampled:
        units = sorted(set(names[axis]))
        taken = generator.multinomial(len(units), np.full(len(units), 1 / len(units)), size=draws.shape[1])
        weights = taken.T[[units.index(name) for name in names[axis]]].astype(np.float64)
    if (seeds := min(cell.seeds for cell in cells)) >= FEWEST:
        draws, resampled, fewest = taus[:, 1:], [*resampled, "seed"], [*fewest, seeds]
    interval = _interval(draws, weights, min(fewest)) if resampled else (np.nan, np.nan)
    return {
        "n_cells": len(taus),
        "n_datasets": counts["dataset"],
        "n_models": counts["model"],
        "tau": float(taus[:, 0].mean()),
        **dict(zip(("ci_low", "ci_high"), interval, strict=True)),
        "resampled": ", ".join(resampled),
        "p_value": _p_value(cells),
        "status": "ok",
        "reason": None,
    }


def _p_value(cells: Sequence[ComparedCell]) -> float:
    """How often the mean τ is at least as far from 0 if the measures of the first criterion are relabelled, alike in
    all cells: a permutation test. NaN if they were not relabelled."""
    relabelled = [cell.relabelled for cell in cells if cell.relabelled is not None]
    if len(relabelled) < len(cells):
        return float("nan")
    observed = abs(np.mean([cell.taus[0] for cell in cells]))
    return float((np.abs(np.stack(relabelled).mean(0)) >= observed - RESOLUTION).mean())


def _interval(draws: np.ndarray, weights: np.ndarray, units: int) -> tuple[float, float]:
    """The 95 % interval of the weighted means of draws [cells, resamples], without those that are NaN.

    Usual percentiles would be too narrow with few units. So the tails are those of Hesterberg's expanded percentiles
    (2015, What Teachers Should Know About the Bootstrap): as far out as Student's interval is wider than a normal one.
    Those of three units are the lowest and highest resample.
    """
    from scipy.special import ndtr, stdtrit

    weights = np.where(np.isnan(draws), 0.0, weights)
    sums = weights.sum(0)
    means = (weights * np.nan_to_num(draws)).sum(0)[sums > 0] / sums[sums > 0]
    tail = 100 * ndtr(stdtrit(units - 1, 0.025) * np.sqrt(units / (units - 1)))
    low, high = np.percentile(means, [tail, 100 - tail])
    return float(low), float(high)


@table("meta_evaluation", reads=["scorecard"], params=["random"])
def meta_evaluation_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """Agreement between the rankings of the protocols."""
    return META_EVALUATION, meta_rows(sources.frame(SCORECARD), sources.facts["random"])
