"""ROAR and Recursive ROAR: the performance that retrained models lose when important words are masked."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from plumbline.config.variants import PLAIN
from plumbline.protocols.bootstrap import mean_interval
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.protocols.performance.table import performance_rows
from plumbline.protocols.roar.schemas import FAITHFULNESS, ROAR
from plumbline.registry import metric, table
from plumbline.store import TableSchema, read_table
from plumbline.tables.chance import Model, at_chance
from plumbline.tables.sources import Sources
from plumbline.training.schemas import PREDICTIONS

CURVE = ["dataset", "model", "strategy", "unit", "measure"]
POINT = [*CURVE, "level", "trained_on", "variant"]
EVERYTHING = 100  # the relative level at which all words are masked


def area_between(levels: npt.ArrayLike, measure: npt.ArrayLike, random: npt.ArrayLike, floor: float) -> float:
    """The area between a measure's curve and the random one, as a share of the area between random and the floor.

    Both areas are by the trapezoidal rule over ascending levels of any steps. `floor` is the performance with
    everything masked. Not bounded: below 0 where random masking costs more, above 1 where a curve goes below the
    floor. NaN where the random curve is not above the floor.
    """
    x, p, b = (np.asarray(values, dtype=np.float64) for values in (levels, measure, random))
    whole = np.trapezoid(b - floor, x)
    return float(np.trapezoid(b - p, x) / whole) if whole > 0 else float("nan")


@metric(
    "faithfulness",
    direction="higher",
    range=[-1, 1],
    unit="share",
    equation="Σ ½Δx[(b_i - p_i) + (b_i+1 - p_i+1)] / Σ ½Δx[(b_i - b_I) + (b_i+1 - b_I)], clipped; p masked by the "
    "measure, b at random, b_I everything",
)
def faithfulness(levels: npt.ArrayLike, measure: npt.ArrayLike, random: npt.ArrayLike, floor: float) -> float:
    """The share of `area_between`, clipped to [-1, 1]."""
    return float(np.clip(area_between(levels, measure, random, floor), -1, 1))


def roar_rows(points: Iterable[dict[str, Any]], scores: pd.DataFrame) -> pd.DataFrame:
    """Rows of the table `roar`: the test scores of every point of every curve, one per seed.

    A point has the keys POINT. `scores` are rows of `performance`; several points may share a variant.
    """
    curves = pd.DataFrame(points, columns=POINT).drop_duplicates()
    test = scores[scores["split"] == "test"].drop(columns="split")
    rows = curves.merge(test, on=["dataset", "variant", "model"], how="left")
    return rows.sort_values([*CURVE, "trained_on", "metric", "level", "seed"], ignore_index=True)


def faithfulness_rows(
    roar: pd.DataFrame, headline: Mapping[str, str], random: str, at_chance: Mapping[Model, str] = MappingProxyType({})
) -> pd.DataFrame:
    """Rows of the table `faithfulness`: means over seeds for each measure's curve except that of `random`.

    Each seed's curve is compared with its random one, by the dataset's `headline` metric. A seed is left out with a
    `reason` if it lacks a level, diverged, has a random curve that is not above its floor, or a model of the plain
    texts that is `at_chance`.
    """
    scores = roar[(roar["trained_on"] == "words") & (roar["metric"] == roar["dataset"].astype(str).map(headline))]
    everything = (scores["measure"] == random) & (scores["unit"] == "relative") & (scores["level"] == EVERYTHING)
    curves = dict(iter(scores.groupby(CURVE, observed=True)))
    floors = dict(iter(scores[everything].groupby(["dataset", "model"], observed=True)))
    rows = []
    for key, curve in curves.items():
        dataset, model, *_, measure = key
        if measure != random:
            baseline = curves.get((*key[:-1], random), scores[:0])
            # With everything masked all strategies are the same.
            floor = floors.get((dataset, model), scores[:0]).drop_duplicates("seed")
            keys = dict(zip(CURVE, key, strict=True)) | {"metric": headline[str(dataset)]}
            excluded = {seed: why for (*cell, seed), why in at_chance.items() if cell == [dataset, PLAIN, model]}
            rows.append(keys | _over_seeds(curve, baseline, floor, excluded))
    return pd.DataFrame(rows, columns=FAITHFULNESS.schema.names)


def _over_seeds(
    curve: pd.DataFrame, random: pd.DataFrame, floor: pd.DataFrame, at_chance: Mapping[int, str]
) -> dict[str, Any]:
    """A row of the table `faithfulness` without its keys, from the rows of `roar` that it compares."""
    levels = sorted({*curve["level"], *random["level"]})
    seeds = sorted({*curve["seed"], *random["seed"]})
    scores = pd.DataFrame(
        [
            {"reason": at_chance[seed]}
            if seed in at_chance
            else _seed_scores(levels, *(rows[rows["seed"] == seed] for rows in (curve, random, floor)))
            for seed in seeds
        ],
        columns=["faithfulness", "unclipped", "floor", "reason"],
    )
    counted, reasons = scores[scores["reason"].isna()], scores["reason"].dropna()
    left_out = f"{len(reasons)} of {len(seeds)} seeds left out: {', '.join(sorted(set(reasons)))}"
    return {
        "n_seeds": len(counted),
        "n_levels": len(levels),
        "per_seed": counted["faithfulness"].tolist(),
        **_mean("faithfulness", counted["faithfulness"]),
        **_mean("unclipped", counted["unclipped"], "unclipped_"),
        **_mean("floor", counted["floor"], "floor_"),
        "status": "ok" if len(counted) else "undefined",
        "reason": left_out if len(reasons) else None,
    }


def _seed_scores(levels: list[int], curve: pd.DataFrame, random: pd.DataFrame, floor: pd.DataFrame) -> dict[str, Any]:
    """The faithfulness of one seed, or the reason why it is left out."""
    for rows, needed, absent in (
        (curve, levels, "level {} is absent"),
        (random, levels, "level {} of random masking is absent"),
        (floor, [EVERYTHING], "everything masked is absent"),
    ):
        missing, undefined = sorted(set(needed) - set(rows["level"])), rows[rows["value"].isna()]
        if missing or len(undefined):
            return {"reason": absent.format(missing[0]) if missing else undefined["reason"].iloc[0]}
    p, b = (rows.sort_values("level")["value"] for rows in (curve, random))
    compared = levels, p, b, floor["value"].item()
    share = area_between(*compared)
    if np.isnan(share):
        return {"reason": "random masking leaves no more than masking everything"}
    return {"faithfulness": faithfulness(*compared), "unclipped": share, "floor": compared[-1]}


def _mean(name: str, values: pd.Series, prefix: str = "") -> dict[str, float]:
    """The mean over seeds and its interval, as columns of the table."""
    low, high = mean_interval(values)
    return {name: float(values.mean()), f"{prefix}ci_low": low, f"{prefix}ci_high": high}


@table(
    "roar",
    equation="performance of models retrained with the top k % of all words masked, next to that with random words "
    "masked",
    cost="One model per seed, measure and level, and with `recursive` one explanation of all texts by each; 56 "
    "models per seed for six measures and ten levels.",
    misleads="With redundant words, `roar` leaves one of two in place and finds a faithful measure poor; `recursive` "
    "masks it next. Masks that follow the gold class may leak it, which lowers faithfulness, even below 0: see "
    "`leakage`. Retrained models may use evidence that the explained model did not.",
    citation=[
        "Hooker, Erhan, Kindermans & Kim (2019), A Benchmark for Interpretability Methods in Deep Neural Networks. "
        "NeurIPS.",
        "Madsen, Meade, Adlakha & Reddy (2022), Evaluating the Faithfulness of Importance Measures in NLP by "
        "Recursively Masking Allegedly Important Tokens and Retraining. Findings of EMNLP.",
    ],
    metrics=["faithfulness", "accuracy", "macro_f1"],
    reads=["predictions:curves"],
    params=["curve_points"],
)
def roar_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """Test scores after masking and retraining, for every point of every curve."""
    files = sources["predictions:curves"]
    tables = (read_table(file.path, PREDICTIONS) for file in files)
    return ROAR, roar_rows(sources.facts["curve_points"], performance_rows([file.keys for file in files], tables))


@table("faithfulness", reads=["roar", "performance"], params=["headlines", "random"])
def faithfulness_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """The faithfulness of each measure by its curves."""
    headlines, random = sources.facts["headlines"], sources.facts["random"]
    excluded = at_chance(sources.frame(PERFORMANCE))
    return FAITHFULNESS, faithfulness_rows(sources.frame(ROAR), headlines, random, excluded)
