"""The scorecard: every measure against every protocol; and the meta-evaluation: whether protocols agree about measures.

A criterion is a number that a protocol assigns to each measure of a dataset and model, for each seed. Some criteria
apply to one kind of measure only, such as attention.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from plumbline.protocols.agreement.twins import find_twins_in_files, first_twin
from plumbline.protocols.bootstrap import FEWEST, student_interval
from plumbline.protocols.criteria import KEYS, VALUES, Cell, Criterion, Measures, criterion_of
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.protocols.scorecard.schemas import META_EVALUATION, SCORECARD
from plumbline.registry import table
from plumbline.store import TableSchema, read_stamped
from plumbline.tables.chance import Model
from plumbline.tables.chance import at_chance as models_at_chance
from plumbline.tables.sources import Sources

RESAMPLES = 1000
# A ranking of fewer measures carries next to no information.
FEWEST_RANKED = 3
# Smaller differences between means are within the error of single precision.
RESOLUTION = 1e-6
Keys = tuple[str, str, str, str]


def values_of(criteria: Sequence[Criterion], tables: Mapping[str, pd.DataFrame], measures: Measures) -> pd.DataFrame:
    """One row per criterion, dataset, model, measure and seed that has a value.

    A criterion of one kind of measure applies to all names of that kind.
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
    """Rows of the table `scorecard`: one per criterion, dataset, variant, model and measure, with or without a value.

    `criteria` are those of the study, `explained` the keys of everything that it explains, `at_chance` the excluded
    models.
    """
    known = dict(tuple(values.groupby(["criterion", *KEYS], observed=True)))
    scored = set(values[["criterion", *KEYS[:-1]]].itertuples(index=False, name=None))
    cells = sorted({*explained, *values[KEYS].itertuples(index=False, name=None)})
    left_out: dict[Cell, list[int]] = {}
    for dataset, variant, model, seed in sorted(at_chance):
        left_out.setdefault((dataset, variant, model), []).append(int(seed))
    rows = []
    for criterion in criteria:
        for dataset, variant, model, measure in cells:
            if not criterion.judges(variant):
                continue
            cell = dataset, variant, model
            seeds = known.get((criterion.name, *cell, measure))
            twin = first_twin(measures.twins, cell, measure)
            row: dict[str, Any] = dict(zip(KEYS, (*cell, measure), strict=True)) | {
                "criterion": criterion.name,
                "direction": criterion.direction,
                "faithfulness": criterion.faithfulness,
                "twin_of": None if twin == measure else twin,
                "degraded_of": measures.degraded.get(measure),
            }
            if seeds is None:
                reason = _missing(criterion, (*cell, measure), scored, measures.kinds, left_out.get(cell, []))
                row |= {"n_seeds": 0, "per_seed": [], "status": "missing", "reason": reason}
            else:
                row |= _estimate(seeds, criterion.bounds) | {"status": "ok"}
                row["reason"] = _seeds_at_chance(left_out[cell]) if cell in left_out else None
            rows.append(row)
    return pd.DataFrame(rows, columns=SCORECARD.schema.names)


def _seeds_at_chance(seeds: Sequence[int]) -> str:
    excluded = f"seed {seeds[0]} is" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))} are"
    return f"{excluded} left out, hardly better than guessing"


def _missing(
    criterion: Criterion, cell: Keys, scored: set[tuple[str, ...]], kinds: Mapping[str, str], at_chance: Sequence[int]
) -> str:
    *block, measure = cell
    if criterion.measure and kinds.get(measure, measure) != criterion.measure:
        return f"it applies to {criterion.measure} only"
    if (criterion.name, *block) in scored:
        return "it has no value for this measure"
    if at_chance:
        return _seeds_at_chance(at_chance)
    return "the study does not have it for this dataset, variant and model, or it is not defined there"


def _estimate(rows: pd.DataFrame, bounds: tuple[float, float]) -> dict[str, Any]:
    """The mean over seeds and, of three or more, its interval."""
    seeds = rows["value"].to_numpy(dtype=np.float64)
    low, high = np.clip(student_interval(seeds), *bounds).tolist()
    value = float(seeds.mean())
    return {"n_seeds": len(seeds), "per_seed": seeds.tolist(), "value": value, "ci_low": low, "ci_high": high}


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

    def signs(self, common: Sequence[str], drawn: np.ndarray | None = None) -> np.ndarray:
        """Which measure of each pair is better, by the means over drawn seeds [draws, n]: [draws, pairs]; or over all
        seeds: [1, pairs]."""
        index = [self.measures.index(measure) for measure in common]
        rows = self.values[index]
        means = self.means[None, index] if drawn is None else rows[:, drawn % rows.shape[1]].mean(-1).T
        gaps = np.stack([means[:, a] - means[:, b] for a, b in combinations(range(len(common)), 2)], axis=1)
        return np.where(np.abs(gaps) > RESOLUTION, np.sign(gaps), 0.0)


def rankings(card: pd.DataFrame, random: str) -> dict[str, dict[RankedCell, Ranking]]:
    """The ranking of each criterion of faithfulness, dataset, variant and model, without degraded measures and the
    random one, which nearly all criteria rank last; of twins the first counts."""
    found: dict[str, dict[RankedCell, Ranking]] = {}
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
        matched, pairs = _matched(found[first], found[second])
        cells = [cell for pair in pairs if (cell := _compare(*pair, generator, resamples))]
        rows.append({"criterion_a": first, "criterion_b": second, "matched": matched} | _mean_tau(cells, generator))
    return pd.DataFrame(rows, columns=META_EVALUATION.schema.names)


class ComparedCell(NamedTuple):
    """The agreement of two criteria on a cell: its dataset, its number of seeds, and τ of all seeds, then of resampled
    ones."""

    dataset: str
    seeds: int
    taus: np.ndarray


def _compare(
    dataset: str, a: Ranking, b: Ranking, generator: np.random.Generator, resamples: int
) -> ComparedCell | None:
    common = [measure for measure in a.measures if measure in b.measures]
    if len(common) < FEWEST_RANKED:
        return None
    seeds = max(a.values.shape[1], b.values.shape[1])
    # A criterion with fewer seeds than the other is averaged over its own: drawn seeds wrap around.
    drawn = generator.integers(seeds, size=(resamples, seeds))
    taus = tau_of_signs(*(np.vstack([side.signs(common), side.signs(common, drawn)]) for side in (a, b)))
    return None if np.isnan(taus[0]) else ComparedCell(dataset, seeds, taus)


def _matched(
    first: Mapping[RankedCell, Ranking], second: Mapping[RankedCell, Ranking]
) -> tuple[str, list[tuple[str, Ranking, Ranking]]]:
    """Pairs of rankings of two criteria with their dataset: of the same dataset, variant and model or, if there are
    none, of the same dataset and model."""
    if common := sorted(first.keys() & second.keys()):
        return "variant", [(block.dataset, first[block], second[block]) for block in common]
    pairs = [(a, b) for a in sorted(first) for b in sorted(second) if (a.dataset, a.model) == (b.dataset, b.model)]
    return "dataset", [(a.dataset, first[a], second[b]) for a, b in pairs]


def _mean_tau(cells: Sequence[ComparedCell], generator: np.random.Generator) -> dict[str, Any]:
    """The mean τ over cells with an interval.

    Cells of one dataset share its texts, and often models, so datasets are resampled with all their cells, if there are
    three or more; seeds too, if each cell has three or more. There is no interval if neither can be resampled.
    """
    if not cells:
        reason = f"no dataset and model has {FEWEST_RANKED} measures that both rank"
        return {"n_cells": 0, "n_datasets": 0, "status": "missing", "reason": reason}
    taus = np.stack([cell.taus for cell in cells])
    datasets = sorted({cell.dataset for cell in cells})
    of_dataset = np.array([[cell.dataset == dataset for cell in cells] for dataset in datasets], dtype=np.float64)
    several_seeds, several_datasets = min(cell.seeds for cell in cells) >= FEWEST, len(datasets) >= FEWEST
    low, high = float("nan"), float("nan")
    if several_seeds or several_datasets:
        resamples = taus.shape[1] - 1
        draws = taus[:, 1:] if several_seeds else np.repeat(taus[:, :1], resamples, axis=1)
        weights = np.ones(draws.shape)
        if several_datasets:
            taken = generator.multinomial(len(datasets), np.full(len(datasets), 1 / len(datasets)), size=resamples)
            weights = of_dataset.T @ taken.T
        weights = np.where(np.isnan(draws), 0.0, weights)
        sums = weights.sum(0)
        means = (weights * np.nan_to_num(draws)).sum(0)[sums > 0] / sums[sums > 0]
        low, high = np.percentile(means, [2.5, 97.5]).tolist()
    return {
        "n_cells": len(taus),
        "n_datasets": len(datasets),
        "tau": float(taus[:, 0].mean()),
        "ci_low": low,
        "ci_high": high,
        "status": "ok",
        "reason": None,
    }


@table(
    "scorecard",
    reads=["criteria", "performance", "importances?"],
    params=["criteria", "random", "measure_kinds", "degraded"],
)
def scorecard_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """Every measure of the study against every protocol."""
    degraded = {name: rung["of"] for name, rung in sources.facts["degraded"].items()}
    # The first block of seeds of a cell determines its twins.
    blocks: dict[Cell, str] = {}
    importances: dict[Cell, dict[str, str]] = {}
    explained = []
    for keys, path in sources["importances"]:
        cell = keys["dataset"], keys["variant"], keys["model"]
        explained.append((*cell, keys["measure"]))
        if blocks.setdefault(cell, keys["seeds"]) == keys["seeds"] and keys["measure"] not in degraded:
            importances.setdefault(cell, {})[keys["measure"]] = path
    twins = {cell: find_twins_in_files(files) for cell, files in importances.items()}
    measures = Measures(sources.facts["measure_kinds"], sources.facts["random"], twins, degraded)
    criteria = [criterion_of(declared) for declared in sources.facts["criteria"]]
    tables = {keys["kind"]: read_stamped(path)[1].to_pandas() for keys, path in sources["criteria"]}
    excluded = models_at_chance(sources.frame(PERFORMANCE))
    return SCORECARD, scorecard_rows(criteria, values_of(criteria, tables, measures), explained, measures, excluded)


@table("meta_evaluation", reads=["scorecard"], params=["random"])
def meta_evaluation_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """Agreement between the rankings of the protocols."""
    return META_EVALUATION, meta_rows(sources.frame(SCORECARD), sources.facts["random"])
