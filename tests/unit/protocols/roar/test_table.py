"""Faithfulness as the area between curves, by hand, and the tables of it."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from plumbline.conformance import check
from plumbline.errors import PlumblineError
from plumbline.protocols.bootstrap import mean_interval
from plumbline.protocols.performance.table import performance_rows
from plumbline.protocols.roar.schemas import FAITHFULNESS, ROAR
from plumbline.protocols.roar.table import (
    area_between,
    faithfulness,
    faithfulness_rows,
    roar_rows,
)
from plumbline.registry import Registry
from plumbline.store import read_table, write_table
from plumbline.tables.export import write_formats
from plumbline.training.schemas import PREDICTIONS

KEYS = {"dataset": "sst", "model": "net", "strategy": "recursive", "unit": "relative", "trained_on": "words"}
LEVELS = [0, 50, 100]
# Random masking of one seed: an area above the floor of 50 * (.4 + .2) / 2 + 50 * (.2 + 0) / 2 = 20.
RANDOM = [0.9, 0.7, 0.5]
# Lower by .1 in the middle: an area of 5, a quarter. And by .2: a half.
QUARTER, HALF = [0.9, 0.6, 0.5], [0.9, 0.5, 0.5]


def rows(measure: str, values: list[float], seed: int = 0, levels: list[int] | None = None, **more) -> list[dict]:
    """Rows of the table `roar`: the curve of one seed."""
    return [
        {**KEYS, "measure": measure, "level": level, "variant": f"v{level}", "seed": seed, "metric": "macro_f1"}
        | {"value": value, "status": "undefined" if np.isnan(value) else "ok"}
        | {"reason": "training diverged" if np.isnan(value) else None}
        | more
        for level, value in zip(levels or LEVELS, values, strict=True)
    ]


def faithfulness_of(*curves: list[dict]) -> pd.DataFrame:
    table = pd.DataFrame([row for curve in curves for row in curve])
    return faithfulness_rows(table, {"sst": "macro_f1", "babi": "accuracy"}, "random")


def only(*curves: list[dict]) -> pd.Series:
    (index,) = faithfulness_of(*curves).index
    return faithfulness_of(*curves).loc[index]


def test_the_area_by_hand():
    assert area_between(LEVELS, QUARTER, RANDOM, 0.5) == pytest.approx(0.25)
    assert area_between(LEVELS, RANDOM, RANDOM, 0.5) == 0
    assert area_between(LEVELS, [0.9, 0.8, 0.5], RANDOM, 0.5) == pytest.approx(-0.25)


def test_uneven_steps_by_hand():
    """Between: 10 * .1 / 2 + 30 * (.1 + .2) / 2 + 60 * .2 / 2 = 11. Above the floor: 4 + 30 * .7 / 2 + 60 * .3 / 2."""
    x, b, p = [0, 10, 40, 100], [0.9, 0.9, 0.8, 0.5], [0.9, 0.8, 0.6, 0.5]
    assert area_between(x, p, b, 0.5) == pytest.approx(11 / 23.5)


@pytest.mark.parametrize("scale", [0.01, 1, 7])
def test_the_unit_of_levels_does_not_matter_nor_does_that_of_performance(scale):
    x = np.array([0, 10, 40, 100]) * scale + 3
    p, b = np.array([0.9, 0.8, 0.6, 0.5]) * 100, np.array([0.9, 0.9, 0.8, 0.5]) * 100
    assert area_between(x, p, b, 50) == pytest.approx(11 / 23.5)


def test_a_finer_grid_on_the_same_lines_changes_nothing():
    x = np.linspace(0, 100, 21)
    p, b = np.interp(x, LEVELS, HALF), np.interp(x, LEVELS, RANDOM)
    assert area_between(x, p, b, 0.5) == pytest.approx(area_between(LEVELS, HALF, RANDOM, 0.5)) == pytest.approx(0.5)


def test_clipping():
    """Below the floor: 50 * .5 = 25 of 20. A random curve near its floor makes small differences large."""
    below, flat = [0.9, 0.2, 0.5], [0.51, 0.51, 0.5]
    assert area_between(LEVELS, below, RANDOM, 0.5) == pytest.approx(1.25)
    assert faithfulness(LEVELS, below, RANDOM, 0.5) == 1
    assert area_between(LEVELS, [0.51, 0.9, 0.5], flat, 0.5) == pytest.approx(-26)
    assert faithfulness(LEVELS, [0.51, 0.9, 0.5], flat, 0.5) == -1
    assert faithfulness(LEVELS, QUARTER, RANDOM, 0.5) == area_between(LEVELS, QUARTER, RANDOM, 0.5)


def test_without_anything_above_the_floor_it_is_undefined():
    with np.errstate(all="raise"):
        assert np.isnan(area_between(LEVELS, QUARTER, [0.5, 0.5, 0.5], 0.5))
        assert np.isnan(faithfulness(LEVELS, QUARTER, [0.9, 0.2, 0.5], 0.6))
        assert np.isnan(area_between(LEVELS, QUARTER, RANDOM, np.nan))


def test_the_metric_is_documented():
    assert check("metric", "faithfulness", Registry()) == []


def test_each_seed_against_its_own_random_curve():
    """The second seed's random curve lies higher, and so does its floor: 50 * .1 of 50 * (.35 + .2 + .2) / 2."""
    higher = [0.95, 0.8, 0.6]
    row = only(
        rows("gradient", QUARTER),
        rows("random", RANDOM),
        rows("gradient", [0.95, 0.7, 0.6], 1),
        rows("random", higher, 1),
        rows("gradient", HALF, 2),
        rows("random", RANDOM, 2),
    )
    second = 5 / (50 * (0.35 + 0.2 + 0.2) / 2)
    assert row["faithfulness"] == row["unclipped"] == pytest.approx((0.25 + second + 0.5) / 3)
    assert row["per_seed"] == pytest.approx([0.25, second, 0.5])
    assert [row["ci_low"], row["ci_high"]] == pytest.approx(mean_interval([0.25, second, 0.5]))
    assert row[["floor", "floor_ci_low", "floor_ci_high"]].tolist() == pytest.approx(
        [1.6 / 3, *mean_interval([0.5, 0.6, 0.5])]
    )
    assert row[["measure", "metric", "n_seeds", "n_levels", "status"]].tolist() == ["gradient", "macro_f1", 3, 3, "ok"]
    assert row["reason"] is None


def test_seeds_are_clipped_before_their_mean():
    row = only(
        *(rows("gradient", [0.9, 0.2, 0.5], seed) for seed in (0, 2)),
        *(rows("random", RANDOM, seed) for seed in (0, 1, 2)),
        rows("gradient", HALF, 1),
    )
    assert row["faithfulness"] == pytest.approx(2.5 / 3) and row["unclipped"] == pytest.approx(3 / 3)
    assert row["ci_high"] == 1 and row["unclipped_ci_high"] == pytest.approx(1.25)


def test_of_one_seed_no_interval_is_known():
    row = only(rows("gradient", HALF), rows("random", RANDOM))
    assert row["faithfulness"] == pytest.approx(0.5) and row[["ci_low", "ci_high", "floor_ci_low"]].isna().all()


GOOD = [rows("gradient", HALF), rows("random", RANDOM)]


@pytest.mark.parametrize(
    ("curve", "random", "reason"),
    [
        (rows("gradient", [0.9, np.nan, 0.5], 1), rows("random", RANDOM, 1), "training diverged"),
        (rows("gradient", HALF, 1), rows("random", [0.9, np.nan, 0.5], 1), "training diverged"),
        (rows("gradient", [0.9, 0.5], 1, [0, 100]), rows("random", RANDOM, 1), "level 50 is absent"),
        ([], rows("random", RANDOM, 1), "level 0 is absent"),
        (rows("gradient", HALF, 1), rows("random", [0.9, 0.5], 1, [0, 100]), "level 50 of random masking is absent"),
        (rows("gradient", HALF, 1), [], "level 0 of random masking is absent"),
        (
            rows("gradient", HALF, 1),
            rows("random", [0.5] * 3, 1),
            "random masking leaves no more than masking everything",
        ),
    ],
)
def test_an_undefined_seed_is_left_out_with_a_reason(curve, random, reason):
    row = only(*GOOD, curve, random)
    assert row["faithfulness"] == pytest.approx(0.5) and row["n_seeds"] == 1 and row["status"] == "ok"
    assert row["reason"] == f"1 of 2 seeds left out: {reason}"


def test_if_all_seeds_are_undefined_so_is_the_row():
    row = only(rows("gradient", [np.nan] * 3), rows("random", RANDOM), rows("random", RANDOM, 1))
    assert row[["status", "n_seeds"]].tolist() == ["undefined", 0]
    assert row[["faithfulness", "ci_low", "ci_high", "unclipped", "floor", "floor_ci_high"]].isna().all()
    assert row["reason"] == "2 of 2 seeds left out: level 0 is absent, training diverged"


def test_absolute_levels_take_the_floor_of_the_relative_ones_whatever_their_strategy():
    """Between: 1 * .2 / 2 + 1 * .2; above the floor of .5: (.4 + .3) / 2 + (.3 + .2) / 2."""
    absolute = {"unit": "absolute", "levels": [0, 1, 2]}
    curves = rows("gradient", [0.9, 0.6, 0.5], **absolute), rows("random", [0.9, 0.8, 0.7], **absolute)
    assert only(*curves)["reason"] == "1 of 1 seeds left out: everything masked is absent"
    everything = rows("random", [0.5], levels=[100], strategy="roar")
    row = only(*curves, everything)
    assert row["unit"] == "absolute" and row["floor"] == 0.5 and row["n_levels"] == 3
    assert row["faithfulness"] == pytest.approx((0.1 + 0.2) / (0.35 + 0.25))
    assert "everything masked is absent" in only(*curves, rows("random", [0.5], 1, [100]))["reason"]
    diverged = rows("random", [np.nan], levels=[100], strategy="roar")
    assert "training diverged" in only(*curves, diverged)["reason"]


def test_curves_are_kept_apart_and_others_are_ignored():
    """By dataset, model, strategy and unit; positions, other metrics and random itself have no rows."""
    noise = [
        *rows("gradient", [0, 0, 0], trained_on="positions"),
        *rows("random", [1, 1, 1], trained_on="positions"),
        *rows("gradient", [0, 0, 0], metric="accuracy"),
        *rows("random", [1, 1, 0], metric="accuracy"),
    ]
    found = faithfulness_of(
        *GOOD,
        noise,
        rows("gradient", QUARTER, strategy="roar"),
        rows("random", RANDOM, strategy="roar"),
        rows("gradient", [0.3, 0.1, 0.1], dataset="babi", metric="accuracy"),
        rows("random", [0.3, 0.3, 0.1], dataset="babi", metric="accuracy"),
    )
    found = found.set_index(["dataset", "strategy"])
    assert len(found) == 3 and set(found["measure"]) == {"gradient"}
    assert found.loc[("sst", "recursive"), "faithfulness"] == pytest.approx(0.5)
    assert found.loc[("sst", "roar"), "faithfulness"] == pytest.approx(0.25)
    assert found.loc["babi", ["faithfulness", "metric"]].iloc[0].tolist() == pytest.approx([10 / 15, "accuracy"])


def predictions(labels: list[int], probabilities: list[list[float]], path, split: str = "test"):
    """The table of predictions of seeds 0 and 1; the second has all classes wrong."""
    n = len(labels)
    columns = {"seed": [0] * n + [1] * n, "split": [split] * 2 * n, "instance": [*range(n)] * 2, "label": labels * 2}
    write_table(path, PREDICTIONS, columns | {"probabilities": probabilities + [row[::-1] for row in probabilities]})
    return read_table(path, PREDICTIONS)


def test_points_that_share_a_variant_have_its_scores_and_tables_can_be_written(tmp_path):
    labels = [0, 1, 1, 0]
    sure, unsure = [[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]], [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    variants = {"plain": sure, "all": unsure, "positions/all": sure}
    cells = [{"dataset": "sst", "variant": name, "model": "net", "seeds": "0-1"} for name in variants]
    scores = performance_rows(cells, [predictions(labels, p, tmp_path / "p") for p in variants.values()])
    dev = performance_rows(cells[:1], [predictions(labels, unsure, tmp_path / "p", "dev")])
    points = [
        KEYS | {"measure": measure, "level": level, "variant": variant, "extra": 1}
        for measure in ("gradient", "random")
        for level, variant in ((0, "plain"), (100, "all"))
    ]
    points.append(KEYS | {"measure": "gradient", "level": 100, "variant": "positions/all", "trained_on": "positions"})
    table = roar_rows(points + points, pd.concat([dev, scores]))
    assert len(table) == 5 * 2 * 5
    accuracy = table[table["metric"] == "accuracy"].set_index(["trained_on", "measure", "level", "seed"])["value"]
    assert accuracy["words", "gradient"].tolist() == accuracy["words", "random"].tolist() == [1, 0, 0.75, 0.25]
    assert accuracy["positions"].tolist() == [1, 0]

    paths = SimpleNamespace(parquet=tmp_path / "t.parquet", csv=tmp_path / "t.csv", latex=tmp_path / "t.tex")
    write_formats(paths, ROAR, table)
    stored = read_table(paths.parquet, ROAR).to_pandas()
    found = faithfulness_rows(stored, {"sst": "accuracy"}, "random")
    # Of the second seed, the random curve rises.
    assert found["faithfulness"].tolist() == [0] and "1 of 2 seeds left out: random" in found["reason"].item()
    write_formats(paths, FAITHFULNESS, found)
    write_formats(paths, FAITHFULNESS, faithfulness_rows(stored[:0], {"sst": "accuracy"}, "random"))


def test_a_point_without_scores_is_noticed(tmp_path):
    cells = [{"dataset": "sst", "variant": "plain", "model": "net"}]
    scores = performance_rows(cells, [predictions([0, 1], [[1.0, 0.0], [0.0, 1.0]], tmp_path / "p")])
    table = roar_rows([KEYS | {"measure": "gradient", "level": 10, "variant": "other"}], scores)
    with pytest.raises(PlumblineError, match="missing values"):
        write_formats(SimpleNamespace(parquet=tmp_path / "t", csv=tmp_path / "c", latex=tmp_path / "l"), ROAR, table)
