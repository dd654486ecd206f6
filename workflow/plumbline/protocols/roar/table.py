"""ROAR and Recursive ROAR: what it costs a model that the words which a measure calls important are masked."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from plumbline.config.variants import PLAIN
from plumbline.protocols.bootstrap import mean_interval
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.protocols.performance.table import performance
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
    """How far a measure's curve lies below the random one, as a share of how far that lies above the floor.

    Both are areas by the trapezoidal rule over ascending levels, whatever their steps. `floor` is the performance with
    everything masked. Not bounded: below 0 where random masking costs more, above 1 where a curve goes below the
    floor. NaN where random masking stays at the floor or below, since nothing is there to be shared.
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
    """The area between a measure's curve and the random one as a share, as `area_between`, clipped to [-1, 1]."""
    return float(np.clip(area_between(levels, measure, random, floor), -1, 1))


def roar_rows(points: Iterable[dict[str, Any]], scores: pd.DataFrame) -> pd.DataFrame:
    """Rows of the table `roar`: the test scores of every point of every curve, seed by seed.

    A point has what POINT names. `scores` are rows of `performance`; several points may share a variant.
    """
    curves = pd.DataFrame(points, columns=POINT).drop_duplicates()
    test = scores[scores["split"] == "test"].drop(columns="split")
    rows = curves.merge(test, on=["dataset", "variant", "model"], how="left")
    return rows.sort_values([*CURVE, "trained_on", "metric", "level", "seed"], ignore_index=True)


def faithfulness_rows(
    roar: pd.DataFrame, headline: Mapping[str, str], random: str, at_chance: Mapping[Model, str] = MappingProxyType({})
) -> pd.DataFrame:
    """Rows of the table `faithfulness`: means over seeds for each measure's curve but that of `random`.

    Each seed's curve is compared with its random one, by the metric that is the dataset's `headline`. A seed that lacks
    a level, diverged, whose random curve is not above its floor, or whose model of the plain texts is one of those
    `at_chance`, is left out, and `reason` says so.
    """
    told = roar[(roar["trained_on"] == "words") & (roar["metric"] == roar["dataset"].astype(str).map(headline))]
    everything = (told["measure"] == random) & (told["unit"] == "relative") & (told["level"] == EVERYTHING)
    curves = dict(iter(told.groupby(CURVE, observed=True)))
    floors = dict(iter(told[everything].groupby(["dataset", "model"], observed=True)))
    rows = []
    for key, curve in curves.items():
        dataset, model, *_, measure = key
        if measure != random:
            against = curves.get((*key[:-1], random), told[:0])
            # Everything masked is the same whatever strategy it stands under.
            floor = floors.get((dataset, model), told[:0]).drop_duplicates("seed")
            keys = dict(zip(CURVE, key, strict=True)) | {"metric": headline[str(dataset)]}
            gone = {seed: why for (*cell, seed), why in at_chance.items() if cell == [dataset, PLAIN, model]}
            rows.append(keys | _over_seeds(curve, against, floor, gone))
    return pd.DataFrame(rows, columns=FAITHFULNESS.schema.names)


def _over_seeds(
    curve: pd.DataFrame, random: pd.DataFrame, floor: pd.DataFrame, at_chance: Mapping[int, str]
) -> dict[str, Any]:
    """A row of the table `faithfulness` without its keys, from the rows of `roar` that it compares."""
    levels = sorted({*curve["level"], *random["level"]})
    seeds = sorted({*curve["seed"], *random["seed"]})
    told = pd.DataFrame(
        [
            {"reason": at_chance[seed]}
            if seed in at_chance
            else _of_seed(levels, *(rows[rows["seed"] == seed] for rows in (curve, random, floor)))
            for seed in seeds
        ],
        columns=["faithfulness", "unclipped", "floor", "reason"],
    )
    counted, faults = told[told["reason"].isna()], told["reason"].dropna()
    left_out = f"{len(faults)} of {len(seeds)} seeds left out: {', '.join(sorted(set(faults)))}"
    return {
        "n_seeds": len(counted),
        "n_levels": len(levels),
        "per_seed": counted["faithfulness"].tolist(),
        **_mean("faithfulness", counted["faithfulness"]),
        **_mean("unclipped", counted["unclipped"], "unclipped_"),
        **_mean("floor", counted["floor"], "floor_"),
        "status": "ok" if len(counted) else "undefined",
        "reason": left_out if len(faults) else None,
    }


def _of_seed(levels: list[int], curve: pd.DataFrame, random: pd.DataFrame, floor: pd.DataFrame) -> dict[str, Any]:
    """What the rows of one seed tell, or the reason why they tell nothing."""
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
    """A mean over seeds under its name, and its interval."""
    low, high = mean_interval(values)
    return {name: float(values.mean()), f"{prefix}ci_low": low, f"{prefix}ci_high": high}


@table("roar", reads=["predictions:curves"], params=["curve_points"])
def roar_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """What masking words and retraining cost: the test scores of every point of every curve."""
    files = sources["predictions:curves"]
    tables = (read_table(file.path, PREDICTIONS) for file in files)
    return ROAR, roar_rows(sources.facts["curve_points"], performance([file.keys for file in files], tables))


@table("faithfulness", reads=["roar", "performance"], params=["headlines", "random"])
def faithfulness_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """How faithful each measure is by its curves."""
    left_out = at_chance(sources.frame(PERFORMANCE))
    return FAITHFULNESS, faithfulness_rows(
        sources.frame(ROAR), sources.facts["headlines"], sources.facts["random"], left_out
    )
