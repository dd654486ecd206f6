"""The scorecard: every measure against every protocol; and the meta-evaluation: whether protocols agree about measures.

A criterion is a number that a protocol gives to a measure of a dataset and model, seed by seed. Some criteria are about
one kind of measure alone, such as attention.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from plumbline.protocols.agreement.twins import Cell, first_twin, twins_of
from plumbline.protocols.bootstrap import FEWEST, student_interval
from plumbline.protocols.criteria import KEYS, VALUES, Criterion, Measures, criterion_of
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.protocols.scorecard.schemas import META_EVALUATION, SCORECARD
from plumbline.registry import table
from plumbline.store import TableSchema, read_stamped
from plumbline.tables.chance import Model
from plumbline.tables.chance import at_chance as models_at_chance
from plumbline.tables.sources import Sources

RESAMPLES = 1000
# A ranking of fewer measures says next to nothing.
FEWEST_RANKED = 3
# Two values of a measure differ by more than what single precision leaves of a mean.
RESOLUTION = 1e-6
Tables = Mapping[str, pd.DataFrame]
Keys = tuple[str, str, str, str]


def values_of(criteria: Sequence[Criterion], tables: Tables, measures: Measures) -> pd.DataFrame:
    """One row per criterion, dataset, model, measure and seed that some table has a number of.

    Criteria about one kind of measure alone take all names of it.
    """
    frames = []
    for criterion in criteria:
        if criterion.table not in tables:
            continue
        rows = criterion.read(tables[criterion.table], measures)
        if criterion.measure:
            named = [name for name, kind in measures.kinds.items() if kind == criterion.measure] or [criterion.measure]
            rows = pd.concat([rows.assign(measure=name) for name in named], ignore_index=True)
        frames.append(rows.assign(criterion=criterion.name).dropna(subset="value"))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=[*VALUES, "criterion"])


def scorecard_rows(
    criteria: Sequence[Criterion],
    values: pd.DataFrame,
    explained: Iterable[Keys],
    measures: Measures,
    at_chance: Collection[Model] = (),
) -> pd.DataFrame:
    """Rows of the table `scorecard`: one per criterion of the study, dataset, variant, model and measure, told or not.

    `criteria` are those that the study has, `explained` the keys of everything that it explains, `at_chance` the models
    that are left out.
    """
    known = dict(tuple(values.groupby(["criterion", *KEYS], observed=True)))
    there = set(values[["criterion", *KEYS[:-1]]].itertuples(index=False, name=None))
    cells = sorted({*explained, *values[KEYS].itertuples(index=False, name=None)})
    left_out: dict[Cell, list[int]] = {}
    for dataset, variant, model, seed in sorted(at_chance):
        left_out.setdefault((dataset, variant, model), []).append(int(seed))
    rows = []
    for criterion in criteria:
        for dataset, variant, model, measure in (one for one in cells if criterion.judges(one[1])):
            cell = dataset, variant, model
            found = known.get((criterion.name, *cell, measure))
            twin = first_twin(measures.twins, cell, measure)
            row = dict(zip(KEYS, (*cell, measure), strict=True)) | {
                "criterion": criterion.name,
                "direction": criterion.direction,
                "twin_of": None if twin == measure else twin,
            }
            if found is None:
                why = _missing(criterion, (*cell, measure), there, measures.kinds, left_out.get(cell, []))
                rows.append(row | {"n_seeds": 0, "per_seed": [], "status": "missing", "reason": why})
            else:
                partly = _seeds_at_chance(left_out[cell]) if cell in left_out else None
                rows.append(row | _estimate(found, criterion.bounds) | {"status": "ok", "reason": partly})
    return pd.DataFrame(rows, columns=SCORECARD.schema.names)


def _seeds_at_chance(seeds: Sequence[int]) -> str:
    told = f"seed {seeds[0]} is" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))} are"
    return f"{told} left out, hardly better than guessing"


def _missing(
    criterion: Criterion, cell: Keys, there: set[tuple[str, ...]], kinds: Mapping[str, str], at_chance: Sequence[int]
) -> str:
    *block, measure = cell
    if criterion.measure and kinds.get(measure, measure) != criterion.measure:
        return f"it is about {criterion.measure} alone"
    if (criterion.name, *block) in there:
        return "it has no number for this measure"
    if at_chance:
        return _seeds_at_chance(at_chance)
    return "the study does not have it for this dataset, variant and model, or it is not defined there"


def _estimate(rows: pd.DataFrame, bounds: tuple[float, float]) -> dict[str, Any]:
    """The mean over seeds and, of three or more, its interval."""
    told = rows["value"].to_numpy(dtype=np.float64)
    low, high = np.clip(student_interval(told), *bounds).tolist()
    value = float(told.mean())
    return {"n_seeds": len(told), "per_seed": told.tolist(), "value": value, "ci_low": low, "ci_high": high}


def relative_ranks(card: pd.DataFrame) -> pd.Series:
    """Where each row's measure stands among those of its criterion, dataset, variant and model: 1 is the best, 0 the
    worst. Of one or two measures nothing is said."""
    better = card["value"].astype(float) * card["direction"].map({"higher": 1.0, "lower": -1.0}).astype(float)
    groups = better.groupby([card[key] for key in ("criterion", *RankedCell._fields)], observed=True)
    count = groups.transform("count")
    return ((groups.rank() - 1) / (count - 1)).where(count >= FEWEST_RANKED)


class RankedCell(NamedTuple):
    """Where measures are ranked."""

    dataset: str
    variant: str
    model: str


class Ranking(NamedTuple):
    """What a criterion says of the measures of a cell, the larger the better: values [measures, seeds], of the seeds
    that all measures have, and the means [measures] over all seeds of each."""

    measures: list[str]
    values: np.ndarray
    means: np.ndarray

    def signs(self, common: Sequence[str], drawn: np.ndarray | None = None) -> np.ndarray:
        """Which of each pair of some measures is better, [draws, pairs], by the means over drawn seeds [draws, n]; or,
        [1, pairs], by those over all."""
        index = [self.measures.index(measure) for measure in common]
        rows = self.values[index]
        means = self.means[None, index] if drawn is None else rows[:, drawn % rows.shape[1]].mean(-1).T
        gaps = np.stack([means[:, a] - means[:, b] for a, b in combinations(range(len(common)), 2)], axis=1)
        return np.where(np.abs(gaps) > RESOLUTION, np.sign(gaps), 0.0)


def rankings(card: pd.DataFrame, random: str) -> dict[str, dict[RankedCell, Ranking]]:
    """By criterion, the ranking of each dataset, variant and model. Without the random one, which nearly all would put
    last; of twins the first counts."""
    found: dict[str, dict[RankedCell, Ranking]] = {}
    told = card[(card["status"] == "ok") & (card["measure"] != random) & card["twin_of"].isna()]
    for key, rows in told.groupby(["criterion", *RankedCell._fields], observed=True, sort=False):
        criterion, *block = map(str, key)
        sign = 1 if rows["direction"].iloc[0] == "higher" else -1
        seeds = rows["n_seeds"].min()
        ranked = sign * np.stack([np.asarray(numbers, dtype=np.float64)[:seeds] for numbers in rows["per_seed"]])
        means = sign * rows["value"].to_numpy(dtype=np.float64)
        found.setdefault(criterion, {})[RankedCell(*block)] = Ranking(
            rows["measure"].astype(str).tolist(), ranked, means
        )
    return found


def tau(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Kendall's τ-b of signs [..., pairs]; NaN where one has no order at all."""
    pairs = np.sqrt((one != 0).sum(-1) * (other != 0).sum(-1))
    return np.divide((one * other).sum(-1), pairs, out=np.full(pairs.shape, np.nan), where=pairs > 0)


def meta_rows(card: pd.DataFrame, random: str, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Rows of the table `meta_evaluation`: for every two criteria of a scorecard, how alike they rank measures.

    It is the mean over datasets, variants and models, with an interval by resampling. Criteria that never judge the
    same variant are compared between those of a dataset and model.
    """
    found, generator = rankings(card, random), np.random.default_rng(0)
    names = [name for name in dict.fromkeys(card["criterion"]) if name in found]
    rows = []
    for first, second in combinations(names, 2):
        matched, pairs = _matched(found[first], found[second])
        compared = [one for pair in pairs if (one := _compared(*pair, generator, resamples))]
        rows.append({"criterion_a": first, "criterion_b": second, "matched": matched} | _agreed(compared, generator))
    return pd.DataFrame(rows, columns=META_EVALUATION.schema.names)


class Compared(NamedTuple):
    """What two criteria say of a cell: its dataset, its seeds, and τ, first as it is, then by resampled seeds."""

    dataset: str
    seeds: int
    taus: np.ndarray


def _compared(
    dataset: str, one: Ranking, other: Ranking, generator: np.random.Generator, resamples: int
) -> Compared | None:
    common = [measure for measure in one.measures if measure in other.measures]
    if len(common) < FEWEST_RANKED:
        return None
    seeds = max(one.values.shape[1], other.values.shape[1])
    # The mean of a criterion with fewer seeds than the other is over its own: drawn seeds go round among them.
    drawn = generator.integers(seeds, size=(resamples, seeds))
    told = tau(*(np.vstack([side.signs(common), side.signs(common, drawn)]) for side in (one, other)))
    return None if np.isnan(told[0]) else Compared(dataset, seeds, told)


def _matched(
    first: Mapping[RankedCell, Ranking], second: Mapping[RankedCell, Ranking]
) -> tuple[str, list[tuple[str, Ranking, Ranking]]]:
    """The rankings of two criteria to compare, with their dataset: of the same dataset, variant and model or, if there
    is no such, of the same dataset and model."""
    if common := sorted(first.keys() & second.keys()):
        return "variant", [(block.dataset, first[block], second[block]) for block in common]
    pairs = [(a, b) for a in sorted(first) for b in sorted(second) if (a.dataset, a.model) == (b.dataset, b.model)]
    return "dataset", [(a.dataset, first[a], second[b]) for a, b in pairs]


def _agreed(compared: Sequence[Compared], generator: np.random.Generator) -> dict[str, Any]:
    """The mean τ over cells with an interval.

    Cells of one dataset share its texts, and often models, so datasets are resampled, each with all its cells, if there
    are three or more; seeds too, if each cell has three or more. There is no interval if neither can be.
    """
    if not compared:
        told = f"no dataset and model has {FEWEST_RANKED} measures that both put in an order"
        return {"n_cells": 0, "n_datasets": 0, "status": "missing", "reason": told}
    every = np.stack([one.taus for one in compared])
    datasets = sorted({one.dataset for one in compared})
    of_dataset = np.array([[one.dataset == dataset for one in compared] for dataset in datasets], dtype=np.float64)
    several_seeds, several_datasets = min(one.seeds for one in compared) >= FEWEST, len(datasets) >= FEWEST
    low, high = float("nan"), float("nan")
    if several_seeds or several_datasets:
        resamples = every.shape[1] - 1
        draws = every[:, 1:] if several_seeds else np.repeat(every[:, :1], resamples, axis=1)
        weights = np.ones(draws.shape)
        if several_datasets:
            taken = generator.multinomial(len(datasets), np.full(len(datasets), 1 / len(datasets)), size=resamples)
            weights = of_dataset.T @ taken.T
        weights = np.where(np.isnan(draws), 0.0, weights)
        sums = weights.sum(0)
        means = (weights * np.nan_to_num(draws)).sum(0)[sums > 0] / sums[sums > 0]
        low, high = np.percentile(means, [2.5, 97.5]).tolist()
    return {
        "n_cells": len(every),
        "n_datasets": len(datasets),
        "tau": float(every[:, 0].mean()),
        "ci_low": low,
        "ci_high": high,
        "status": "ok",
        "reason": None,
    }


@table("scorecard", reads=["criteria", "performance", "importances?"], params=["criteria", "random", "measure_kinds"])
def scorecard_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """Every measure of the study against every protocol."""
    # The first block of seeds of a cell says which of its measures rank alike.
    blocks: dict[Cell, str] = {}
    importances: dict[Cell, dict[str, str]] = {}
    explained = []
    for keys, path in sources["importances"]:
        cell = keys["dataset"], keys["variant"], keys["model"]
        explained.append((*cell, keys["measure"]))
        if blocks.setdefault(cell, keys["seeds"]) == keys["seeds"]:
            importances.setdefault(cell, {})[keys["measure"]] = path
    twins = {cell: twins_of(files) for cell, files in importances.items()}
    measures = Measures(sources.facts["measure_kinds"], sources.facts["random"], twins)
    criteria = [criterion_of(declared) for declared in sources.facts["criteria"]]
    tables = {keys["kind"]: read_stamped(path)[1].to_pandas() for keys, path in sources["criteria"]}
    left_out = models_at_chance(sources.frame(PERFORMANCE))
    return SCORECARD, scorecard_rows(criteria, values_of(criteria, tables, measures), explained, measures, left_out)


@table("meta_evaluation", reads=["scorecard"], params=["random"])
def meta_evaluation_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """The protocols against each other: how alike they rank measures."""
    return META_EVALUATION, meta_rows(sources.frame(SCORECARD), sources.facts["random"])
