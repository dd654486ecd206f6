"""The scorecard: every measure against every protocol; and the meta-evaluation: whether protocols agree about measures.

A criterion is a number that a protocol gives to a measure of a dataset and model, seed by seed. Some criteria are about
one kind of measure alone, such as attention.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from plumbline.config.masking import PLAIN
from plumbline.protocols.bootstrap import FEWEST, mean_interval
from plumbline.store import ARTEFACTS
from plumbline.tables.agreement import fewest_tokens, overall_taus

KEYS = ["dataset", "variant", "model", "measure"]
VALUES = [*KEYS, "seed", "value", "n", "std"]
RESAMPLES = 1000
# A ranking of fewer measures says next to nothing.
FEWEST_RANKED = 3
# Two values of a measure differ by more than rounding.
RESOLUTION = 1e-9
Tables = Mapping[str, pd.DataFrame]
Keys = tuple[str, str, str, str]


class Criterion(NamedTuple):
    """A column of the scorecard: what it is called, the table it is read from, which values are better, how to read
    it, which variants of datasets it judges, the kind of measure that it is about, if one alone, and its bounds."""

    name: str
    table: str
    direction: str
    read: Callable[[pd.DataFrame, str], pd.DataFrame]
    variants: str = PLAIN
    only: str = ""
    bounds: tuple[float, float] = (-np.inf, np.inf)

    def judges(self, variant: str) -> bool:
        """Whether it has to do with a variant."""
        return self.variants == "every" or (self.variants == PLAIN) == (variant == PLAIN)


def _agreement(table: pd.DataFrame, random: str) -> pd.DataFrame:
    """Mean τ of a measure with all others but the random one."""
    taus = fewest_tokens(overall_taus(table))
    taus = taus[(taus["measure_a"] != random) & (taus["measure_b"] != random)]
    both = [taus.assign(measure=taus[side]) for side in ("measure_a", "measure_b")]
    rows = pd.concat(both, ignore_index=True)
    groups = rows.groupby([*KEYS, "seed"], observed=True)
    told = groups.agg(value=("mean", "mean"), n=("n", "min"))
    # Over texts, of the mean of partners: as if these moved together, which makes it rather too wide.
    told["std"] = groups["std"].mean()
    return told.reset_index()


def _of_attention(column: str, spread: str | None = None) -> Callable[[pd.DataFrame, str], pd.DataFrame]:
    """A number about attention over all texts; of several epsilons that of the largest."""

    def read(table: pd.DataFrame, random: str) -> pd.DataFrame:
        rows = table[(table["predicted_class"] == "all") & (table["max_attention_bin"] == "all")]
        if "epsilon" in rows:
            rows = rows[rows["epsilon"] == rows["epsilon"].max()]
        return rows.assign(measure="attention", value=rows[column], std=rows[spread] if spread else np.nan)[VALUES]

    return read


def _attefa(table: pd.DataFrame, random: str) -> pd.DataFrame:
    rows = table[(table["objective"] == "attefa") & (table["status"] == "ok")]
    rows = rows[rows["selected_on"] == ("dev" if (rows["selected_on"] == "dev").any() else "test")]
    return rows.assign(measure="attention", value=rows["attefa"], n=np.nan, std=np.nan)[VALUES]


def _roar(strategy: str) -> Callable[[pd.DataFrame, str], pd.DataFrame]:
    """Faithfulness seed by seed, by relative levels if there are such."""

    def read(table: pd.DataFrame, random: str) -> pd.DataFrame:
        rows = table[(table["strategy"] == strategy) & (table["status"] == "ok")]
        rows = rows[rows["unit"] == ("relative" if (rows["unit"] == "relative").any() else "absolute")]
        rows = rows.explode("per_seed", ignore_index=True).assign(variant=PLAIN)
        seed = rows.groupby(KEYS, observed=True).cumcount()
        return rows.assign(seed=seed, value=rows["per_seed"].astype(float), n=np.nan, std=np.nan)[VALUES]

    return read


def _ground_truth(table: pd.DataFrame, random: str) -> pd.DataFrame:
    """How much of a measure's importance is on what decides."""
    rows = table[table["truth"] & (table["class"] == "all") & (table["status"] == "ok")]
    return rows.assign(value=rows["attributed_fraction"], std=np.nan)[VALUES]


def _rationales(table: pd.DataFrame, random: str) -> pd.DataFrame:
    rows = table[table["status"] == "ok"]
    return rows.assign(measure="selection", value=rows["precision"], std=np.nan)[VALUES]


def _erasure(metric: str) -> Callable[[pd.DataFrame, str], pd.DataFrame]:
    def read(table: pd.DataFrame, random: str) -> pd.DataFrame:
        rows = table[(table["metric"] == metric) & table["ratio"].isna() & (table["status"] == "ok")]
        return rows.assign(value=rows["mean"])[VALUES]

    return read


CRITERIA = [
    Criterion("agreement", "agreement", "higher", _agreement, bounds=(-1, 1)),
    Criterion("permutation", "permutation", "higher", _of_attention("median_change_mean"), only="attention"),
    Criterion(
        "adversarial attention",
        "adversarial_attention",
        "lower",
        _of_attention("jsd_mean", "jsd_std"),
        only="attention",
    ),
    Criterion("AtteFa", "adversary", "higher", _attefa, only="attention"),
    Criterion("ROAR", "faithfulness", "higher", _roar("roar")),
    Criterion("Recursive ROAR", "faithfulness", "higher", _roar("recursive")),
    Criterion("ground truth", "ground_truth", "higher", _ground_truth, "manipulated"),
    Criterion("rationale precision", "rationales", "higher", _rationales, "manipulated", "selection"),
    *(
        Criterion(metric.replace("_", " "), "erasure", direction, _erasure(metric), "every")
        for metric, direction in (
            ("comprehensiveness", "higher"),
            ("sufficiency", "lower"),
            ("soft_comprehensiveness", "higher"),
            ("soft_sufficiency", "higher"),
        )
    ),
]


def values_of(tables: Tables, random: str, kinds: Mapping[str, str]) -> pd.DataFrame:
    """One row per criterion, dataset, model, measure and seed that some table has a number of.

    `kinds` are the registered measures behind the study's names, of which criteria about one kind alone take all.
    """
    frames = []
    for criterion in CRITERIA:
        if criterion.table not in tables:
            continue
        rows = criterion.read(tables[criterion.table], random)
        if criterion.only:
            named = [name for name, kind in kinds.items() if kind == criterion.only] or [criterion.only]
            rows = pd.concat([rows.assign(measure=name) for name in named], ignore_index=True)
        frames.append(rows.assign(criterion=criterion.name).dropna(subset="value"))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=[*VALUES, "criterion"])


def scorecard_rows(
    values: pd.DataFrame, tables: Iterable[str], explained: Iterable[Keys], kinds: Mapping[str, str]
) -> pd.DataFrame:
    """Rows of the table `scorecard`: one per criterion of the study, dataset, variant, model and measure, told or not.

    `tables` are those that the study has, `explained` the keys of everything that it explains.
    """
    known = dict(tuple(values.groupby(["criterion", *KEYS], observed=True)))
    there = set(values[["criterion", *KEYS[:-1]]].itertuples(index=False, name=None))
    cells = sorted({*explained, *values[KEYS].itertuples(index=False, name=None)})
    rows = []
    for criterion in (one for one in CRITERIA if one.table in set(tables)):
        for cell in (one for one in cells if criterion.judges(one[1])):
            found = known.get((criterion.name, *cell))
            row = dict(zip(KEYS, cell, strict=True)) | {"criterion": criterion.name, "direction": criterion.direction}
            if found is None:
                rows.append(row | _missing(criterion, cell, there, kinds))
            else:
                rows.append(row | _estimate(found, criterion.bounds) | {"status": "ok", "reason": None})
    return pd.DataFrame(rows, columns=ARTEFACTS["scorecard"].schema.names)


def _missing(criterion: Criterion, cell: Keys, there: set[tuple[str, ...]], kinds: Mapping[str, str]) -> dict[str, Any]:
    *block, measure = cell
    if criterion.only and kinds.get(measure, measure) != criterion.only:
        reason = f"it is about {criterion.only} alone"
    elif (criterion.name, *block) not in there:
        reason = "the study does not have it for this dataset, variant and model, or it is not defined there"
    else:
        reason = "it has no number for this measure"
    return {"n_seeds": 0, "per_seed": [], "value": None, "ci_low": None, "ci_high": None, "interval": None} | {
        "status": "missing",
        "reason": reason,
    }


def _estimate(rows: pd.DataFrame, bounds: tuple[float, float]) -> dict[str, Any]:
    """The mean over seeds with an interval: over seeds if there are enough, else over texts if their spread is told."""
    told = rows["value"].to_numpy(dtype=np.float64)
    low, high, over = float("nan"), float("nan"), None
    if len(told) >= FEWEST:
        (low, high), over = mean_interval(told), "seeds"
    elif rows[["n", "std"]].notna().all(axis=None):
        # Seeds read the same texts, so that more of them make no more texts.
        reach = 1.96 * float(np.sqrt((rows["std"].astype(float) ** 2).mean() / rows["n"].astype(float).min()))
        (low, high), over = np.clip([told.mean() - reach, told.mean() + reach], *bounds).tolist(), "texts"
    return {
        "n_seeds": len(told),
        "per_seed": told.tolist(),
        "value": float(told.mean()),
        "ci_low": low,
        "ci_high": high,
        "interval": over,
    }


class Block(NamedTuple):
    """Where measures are ranked."""

    dataset: str
    variant: str
    model: str


class Ranking(NamedTuple):
    """What a criterion says of the measures of a cell: values [measures, seeds], the larger the better."""

    measures: list[str]
    values: np.ndarray

    def signs(self, common: Sequence[str], drawn: np.ndarray) -> np.ndarray:
        """Which of each pair of some measures is better, [draws, pairs], by the means over drawn seeds [draws, n]."""
        rows = self.values[[self.measures.index(measure) for measure in common]]
        means = rows[:, drawn % rows.shape[1]].mean(-1).T
        gaps = np.stack([means[:, a] - means[:, b] for a, b in combinations(range(len(common)), 2)], axis=1)
        return np.where(np.abs(gaps) > RESOLUTION, np.sign(gaps), 0.0)


def rankings(card: pd.DataFrame, random: str) -> dict[str, dict[Block, Ranking]]:
    """By criterion, the ranking of each dataset, variant and model. Without the random one, which nearly all would put
    last."""
    found: dict[str, dict[Block, Ranking]] = {}
    told = card[(card["status"] == "ok") & (card["measure"] != random)]
    for key, rows in told.groupby(["criterion", *Block._fields], observed=True, sort=False):
        criterion, *block = map(str, key)
        sign = 1 if rows["direction"].iloc[0] == "higher" else -1
        seeds = rows["n_seeds"].min()
        ranked = sign * np.stack([np.asarray(numbers, dtype=np.float64)[:seeds] for numbers in rows["per_seed"]])
        found.setdefault(criterion, {})[Block(*block)] = Ranking(rows["measure"].astype(str).tolist(), ranked)
    return found


def tau(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Kendall's τ-b of signs [..., pairs]; NaN where one has no order at all."""
    pairs = np.sqrt((one != 0).sum(-1) * (other != 0).sum(-1))
    return np.divide((one * other).sum(-1), pairs, out=np.full(pairs.shape, np.nan), where=pairs > 0)


def meta_rows(card: pd.DataFrame, random: str, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Rows of the table `meta_evaluation`: for every two criteria of a scorecard, how alike they rank measures.

    It is the mean over datasets, variants and models, with an interval over seeds, and over these where there are
    enough. Criteria that never judge the same variant are compared between those of a dataset and model.
    """
    found, generator = rankings(card, random), np.random.default_rng(0)
    names = [criterion.name for criterion in CRITERIA if criterion.name in found]
    rows = []
    for first, second in combinations(names, 2):
        taus = []
        matched, pairs = _matched(found[first], found[second])
        for one, other in pairs:
            common = [measure for measure in one.measures if measure in other.measures]
            if len(common) < FEWEST_RANKED:
                continue
            seeds = max(one.values.shape[1], other.values.shape[1])
            # The first draw is the sample itself.
            drawn = np.vstack([np.arange(seeds), generator.integers(seeds, size=(resamples, seeds))])
            told = tau(one.signs(common, drawn), other.signs(common, drawn))
            if not np.isnan(told[0]):
                taus.append(told)
        rows.append({"criterion_a": first, "criterion_b": second, "matched": matched} | _agreed(taus, generator))
    return pd.DataFrame(rows, columns=ARTEFACTS["meta_evaluation"].schema.names)


def _matched(
    first: Mapping[Block, Ranking], second: Mapping[Block, Ranking]
) -> tuple[str, list[tuple[Ranking, Ranking]]]:
    """The rankings of two criteria to compare: of the same dataset, variant and model or, if there is no such, of the
    same dataset and model."""
    if common := sorted(first.keys() & second.keys()):
        return "variant", [(first[block], second[block]) for block in common]
    pairs = [(a, b) for a in sorted(first) for b in sorted(second) if (a.dataset, a.model) == (b.dataset, b.model)]
    return "dataset", [(first[a], second[b]) for a, b in pairs]


def _agreed(taus: list[np.ndarray], generator: np.random.Generator) -> dict[str, Any]:
    if not taus:
        told = f"no dataset and model has {FEWEST_RANKED} measures that both put in an order"
        return {"n_cells": 0, "tau": None, "ci_low": None, "ci_high": None, "status": "missing", "reason": told}
    every = np.stack(taus)
    draws = every[:, 1:]
    if len(every) >= FEWEST:
        cells = generator.integers(len(every), size=draws.T.shape)
        draws = np.take_along_axis(draws, cells.T, axis=0)
    low, high = np.nanpercentile(np.nanmean(draws, axis=0), [2.5, 97.5])
    return {
        "n_cells": len(every),
        "tau": float(every[:, 0].mean()),
        "ci_low": float(low),
        "ci_high": float(high),
        "status": "ok",
        "reason": None,
    }
