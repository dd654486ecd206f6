"""Importance on regions of known truth: by hand, against scikit-learn, and for random and oracle measures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.metrics import roc_auc_score

from plumbline import store
from plumbline.attribution.files import write_importances
from plumbline.conformance import check, example_explained
from plumbline.data.schemas import INSTANCES
from plumbline.errors import PlumblineError
from plumbline.protocols.explained import Explained
from plumbline.protocols.ground_truth.schemas import GROUND_TRUTH, GROUND_TRUTH_SCORES, TRACE_SCORES
from plumbline.protocols.ground_truth.score import (
    ALL_ZERO,
    NO_WORDS,
    NOT_FINITE,
    NOT_MANIPULATED,
    GroundTruth,
    group_shares,
    trace_rows,
)
from plumbline.registry import Registry
from plumbline.training.schemas import PREDICTIONS

MANIPULATION = {"variant": "articles-0-r0.6", "name": "articles", "kind": "articles-cn", "r": 0.6, "p_star": 0.6}
MANIPULATION |= {"visibility": None, "level": None, "draw": 0, "groups": ["correlating", "idle"], "reads": "words"}
Maps = Sequence[Sequence[float]]


def explained(
    folder: Path,
    groups: list[np.ndarray],
    importances: dict[str, Any],
    labels: list[int],
    predicted: list[int],
    seeds: Sequence[int] = (0,),
    manipulation: dict[str, Any] = MANIPULATION,
    pair_groups: list[np.ndarray] | None = None,
    pair: dict[str, Any] | None = None,
) -> Explained:
    """A cell of texts with these groups and a special token at either end; all seeds have the same `importances`, by
    measure."""
    count = len(groups)
    keys: dict[str, Any] = {"split": ["test"] * count, "instance": list(range(count))}
    specials = [np.concatenate([[0], own, [0]]).astype(np.int8) for own in groups]
    free = [np.concatenate([[False], np.ones(len(own), dtype=bool), [False]]) for own in groups]
    texts: dict[str, Any] = {**keys, "label": labels, "groups": specials, "maskable": free}
    texts |= {"ids": [np.arange(len(own), dtype=np.int32) for own in specials], "tokens": [[] for _ in groups]}
    if pair_groups is not None:
        texts |= {"groups_b": pair_groups, "maskable_b": [np.ones(len(own), dtype=bool) for own in pair_groups]}
    store.write_table(folder / "instances.parquet", INSTANCES, texts)
    store.write_json(folder / "dataset.json", {"manipulation": manipulation})
    keys = {name: values * len(seeds) for name, values in keys.items()} | {"seed": np.repeat(seeds, count)}
    sure = [np.eye(2, dtype=np.float32)[class_] for class_ in predicted] * len(seeds)
    predictions = {**keys, "label": labels * len(seeds), "probabilities": sure}
    store.write_table(folder / "predictions.parquet", PREDICTIONS, predictions)
    for measure, maps in importances.items():
        columns = {**keys, "scores": [np.asarray(scores, dtype=np.float32) for scores in maps] * len(seeds)}
        if pair and measure in pair:
            columns["pair"] = [np.asarray(scores, dtype=np.float32) for scores in pair[measure]] * len(seeds)
        write_importances(folder / f"{measure}.parquet", {measure: columns})
    paths = {measure: folder / f"{measure}.parquet" for measure in importances}
    return Explained(
        folder / "predictions.parquet", paths, list(seeds), ["test"], folder / "instances.parquet",
        summary=folder / "dataset.json",
    )  # fmt: skip


def scored(cell: Explained, folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The stored scores and their stored summary."""
    store.write_table(folder / "scores.parquet", GROUND_TRUTH_SCORES, GroundTruth().score(cell))
    table = store.read_table(folder / "scores.parquet", GROUND_TRUTH_SCORES)
    summary = GroundTruth().summarise(table).assign(dataset="d", variant="v", model="m")
    columns = {name: summary[name] for name in summary.columns}
    store.write_table(folder / "summary.parquet", GROUND_TRUTH, columns)
    return table.to_pandas(), store.read_table(folder / "summary.parquet", GROUND_TRUTH).to_pandas()


def groups_of(*texts: Sequence[int]) -> list[np.ndarray]:
    return [np.array(groups, dtype=np.int8) for groups in texts]


# One map.


def test_shares_by_hand():
    shares = group_shares(np.array([3.0, -1.0, 4.0, 2.0]), np.array([1, 2, 0, 1], dtype=np.int8), 2)
    assert shares.attributed.tolist() == [0.5, 0.1, 0.4] and shares.region.tolist() == [0.5, 0.25, 0.25]
    # The two largest are at indices 2 and 0; the pairs of truth and not: 3 > 1, 3 < 4, 2 > 1, 2 < 4.
    assert shares.found == 0.5 and shares.auc == 0.5 and shares.reason is None


@pytest.mark.parametrize(
    ("scores", "groups", "found"),
    [
        ([1, 1, 1, 1], [1, 0, 0, 0], 1 / 4),
        ([2, 1, 1, 1], [1, 1, 0, 0], (1 + 1 / 3) / 2),
        ([1, 2, 2, 0], [1, 0, 0, 0], 0),
        ([5, 5, 1, 0], [1, 1, 0, 0], 1),
        ([0, 0, 0, 1], [0, 1, 1, 0], 1 / 3),
    ],
)
def test_tied_words_are_found_with_equal_probability(scores: list[float], groups: list[int], found: float):
    shares = group_shares(np.array(scores, dtype=float), np.array(groups), 1)
    assert shares.found == pytest.approx(found)
    random, many, k = np.random.default_rng(0), [], sum(groups)
    for _ in range(4000):
        order = np.lexsort([random.random(len(scores)), -np.abs(scores)])
        many.append(np.array(groups)[order[:k]].mean())
    assert shares.found == pytest.approx(np.mean(many), abs=0.04)


def test_auc_is_scikit_learns_with_ties_and_without():
    random = np.random.default_rng(1)
    for values in (5, 1000):
        for n in (2, 3, 40):
            scores, groups = random.integers(-values, values, n).astype(float), random.integers(0, 3, n)
            groups[:2] = 1, 0
            scores[0] = values
            expected = roc_auc_score(groups == 1, np.abs(scores))
            assert group_shares(scores, groups, 2).auc == pytest.approx(expected)


def test_undefined_maps_have_a_reason_and_still_a_region():
    groups = np.array([1, 0])
    for scores, reason in ([0, 0], ALL_ZERO), ([np.nan, 1], NOT_FINITE), ([np.inf, 1], NOT_FINITE):
        shares = group_shares(np.array(scores, dtype=np.float32), groups, 1)
        assert shares.reason == reason and np.isnan([*shares.attributed, shares.found, shares.auc]).all()
        assert shares.region.tolist() == [0.5, 0.5]
    assert group_shares(np.empty(0), np.empty(0, dtype=np.int8), 1).reason == NO_WORDS


def test_found_and_auc_are_undefined_without_truth_and_auc_for_truth_alone():
    without = group_shares(np.array([1.0, 3.0]), np.array([0, 2]), 2)
    assert without.attributed.tolist() == [0, 0.75, 0.25] and np.isnan([without.found, without.auc]).all()
    alone = group_shares(np.array([1.0, 3.0]), np.array([1, 1]), 1)
    assert alone.attributed.tolist() == [1, 0] and alone.found == 1 and np.isnan(alone.auc)


def test_small_numbers_keep_their_shares():
    scores = np.full(50_000, 1e-30, dtype=np.float32)
    groups = (np.arange(50_000) < 12_500).astype(np.int8)
    assert group_shares(scores, groups, 1).attributed[0] == pytest.approx(0.25, abs=1e-12)


def test_importances_must_be_as_many_as_words():
    with pytest.raises(PlumblineError, match="has 2 importances for 3 words"):
        group_shares(np.ones(2), np.zeros(3, dtype=np.int8), 1)


# A cell.


def test_a_cell_by_hand(tmp_path: Path):
    groups = groups_of([1, 2, 0], [1, 0], [0, 0], [1, 1, 0, 0])
    maps = [[6, 3, 1], [0, 0], [1, 2], [1, 1, 1, -1]]
    cell = explained(tmp_path, groups, {"mine": maps}, labels=[0, 1, 1, 1], predicted=[0, 1, 0, 1])
    scores, summary = scored(cell, tmp_path)
    assert len(scores) == 4 * 3 and scores["group"].tolist()[:3] == ["correlating", "idle", "other"]
    truth = scores[scores["truth"]]
    assert truth["group"].eq("correlating").all()
    assert truth["attributed"].tolist() == pytest.approx([0.6, np.nan, 0, 0.5], nan_ok=True)
    assert truth["region"].tolist() == pytest.approx([1 / 3, 1 / 2, 0, 1 / 2])
    assert truth["found"].tolist() == pytest.approx([1, np.nan, np.nan, 0.5], nan_ok=True)
    assert truth["reason"].tolist()[1] == ALL_ZERO and truth["status"].tolist() == ["ok", "undefined", "ok", "ok"]
    assert scores[~scores["truth"]][["found", "auc"]].isna().all(axis=None)
    assert scores["length"].tolist() == [3] * 3 + [2] * 6 + [4] * 3
    defined = scores[scores["status"] == "ok"].groupby("instance")["attributed"].sum()
    assert defined.to_numpy() == pytest.approx(1)

    rows = summary.set_index(["group", "class"])
    every = rows.loc["correlating", "all"]
    assert (every["n"], every["undefined"]) == (3, 1) and every["attributed_fraction"] == pytest.approx(1.1 / 3)
    assert every["region_fraction"] == pytest.approx((1 / 3 + 1 / 2 + 0 + 1 / 2) / 4) and every["found"] == 0.75
    assert every["accuracy"] == 0.75 and every["r"] == 0.6 and every["kind"] == "articles-cn"
    assert every["manipulation"] == "articles" and every["draw"] == 0 and pd.isna(every["level"])
    # Three or four of four right by a coin of 0.6: 4 · 0.6³ · 0.4 + 0.6⁴.
    assert every["chance_bound"] == pytest.approx(4 * 0.216 * 0.4 + 0.1296)
    assert set(summary["class"]) == {"all", "0", "1"} and rows.loc[("correlating", "0"), "n"] == 1
    assert rows.loc[("correlating", "1"), "attributed_fraction"] == pytest.approx(0.25)
    assert every["ci_low"] <= every["attributed_fraction"] <= every["ci_high"]
    assert pd.isna(rows.loc[("correlating", "0"), "ci_low"])


def test_second_texts_count_where_a_measure_covers_them(tmp_path: Path):
    maps, seconds = [[1, 3], [2, 2]], [[4, 2, 0], [6, 0, 0]]
    cell = explained(
        tmp_path, groups_of([1, 0], [0, 0]), {"both": maps, "first": maps}, [0, 1], [0, 1],
        pair_groups=groups_of([0, 1, 2], [1, 0, 0]), pair={"both": seconds},
    )  # fmt: skip
    truth = scored(cell, tmp_path)[0].query("truth").set_index(["measure", "instance"])
    assert truth.loc["both", "attributed"].tolist() == pytest.approx([0.3, 0.6])
    assert truth.loc["both", "region"].tolist() == pytest.approx([0.4, 0.2])
    assert truth.loc["first", "attributed"].tolist() == pytest.approx([0.25, 0])
    assert truth.loc["both", "length"].tolist() == [5, 5]


def test_a_plain_variant_gives_undefined_rows(tmp_path: Path):
    scores, summary = scored(example_explained(tmp_path), tmp_path)
    assert len(scores) == 2 * 24 * 3 and scores["reason"].eq(NOT_MANIPULATED).all()
    assert scores["attributed"].isna().all() and not scores["truth"].any() and scores["group"].eq("other").all()
    assert summary["status"].eq("undefined").all() and summary["reason"].str.contains(NOT_MANIPULATED).all()


def test_it_conforms():
    assert check("protocol", "ground_truth", Registry()) == []


@pytest.mark.parametrize("pixels", [False, True])
def test_random_importance_matches_the_regions_share_and_an_oracle_finds_all(tmp_path: Path, pixels: bool):
    """Texts of 5 to 60 words, some without an article; or images whose region is a third of them."""
    random = np.random.default_rng(3)
    if pixels:
        side, count = 48, 60
        image = np.zeros((side, side), dtype=np.int8)
        image[10:26] = 1
        groups = [image.ravel()] * count
    else:
        count = 300
        groups = [
            random.choice(3, size=random.integers(5, 60), p=[0.84, 0.08, 0.08]).astype(np.int8) for _ in range(count)
        ]
    labels = random.integers(0, 2, count).tolist()
    importances = {
        "random": [random.random(len(own)) for own in groups],
        "oracle": [np.where(own == 1, 2.0, 0) for own in groups],
        "contrary": [np.where(own == 1, 0, 1.0) for own in groups],
    }
    _, summary = scored(explained(tmp_path, groups, importances, labels, labels), tmp_path)
    summary = summary[summary["class"] == "all"].set_index(["measure", "group"])
    share = np.mean([(own == 1).mean() for own in groups])
    for group in ("correlating", "idle", "other"):
        row = summary.loc["random", group]
        assert row["ci_low"] <= row["region_fraction"] <= row["ci_high"]
    row = summary.loc["random", "correlating"]
    assert row["region_fraction"] == pytest.approx(share) and row["auc"] == pytest.approx(0.5, abs=0.03)
    assert row["attributed_fraction"] == pytest.approx(share, abs=0.002 if pixels else 0.01)
    shares = [(own == 1).mean() for own in groups if (own == 1).any()]
    assert row["found"] == pytest.approx(np.mean(shares), abs=0.03)
    oracle, contrary = (summary.loc[name, "correlating"] for name in ("oracle", "contrary"))
    assert (oracle["attributed_fraction"], oracle["found"], oracle["auc"]) == (1, 1, 1)
    assert (contrary["attributed_fraction"], contrary["found"], contrary["auc"]) == (0, 0, 0)
    # In texts without an article an oracle of articles has no importance.
    assert oracle["undefined"] == sum(not (own == 1).any() for own in groups) and (oracle["undefined"] > 0) != pixels


def test_scores_do_not_depend_on_other_measures_and_seeds(tmp_path: Path):
    random = np.random.default_rng(4)
    groups = [random.integers(0, 3, n).astype(np.int8) for n in (4, 9, 2, 7)]
    maps = {name: [random.normal(size=len(own)) for own in groups] for name in ("a", "b")}
    together = GroundTruth().score(explained(tmp_path, groups, maps, [0, 1, 0, 1], [0, 1, 1, 1], seeds=[3, 8]))
    frame = pd.DataFrame(together)
    alone = pd.DataFrame(
        GroundTruth().score(explained(tmp_path, groups, {"b": maps["b"]}, [0, 1, 0, 1], [0, 1, 1, 1], seeds=[8]))
    )
    same = frame[(frame["measure"] == "b") & (frame["seed"] == 8)].reset_index(drop=True)
    pd.testing.assert_frame_equal(same, alone)


# Models during training.


def test_trace_rows_are_means_at_an_epoch(tmp_path: Path):
    groups = groups_of([1, 0], [1, 0])
    importances = {"a": [np.array([3.0, 1.0]), np.array([1.0, 1.0])], "b": [np.zeros(2), np.array([0.0, 2.0])]}
    rows = trace_rows(7, 4, 0.9, importances, groups, ["region"], 0.8)
    frame = pd.DataFrame(rows).set_index(["measure", "group"])
    assert frame.loc[("a", "region"), "attributed_fraction"] == pytest.approx((0.75 + 0.5) / 2)
    assert frame.loc[("b", "other"), "attributed_fraction"] == 1 and frame.loc[("b", "region"), "undefined"] == 1
    assert frame["region_fraction"].eq(0.5).all() and frame["truth"].tolist() == [True, False] * 2
    store.write_table(tmp_path / "t.parquet", TRACE_SCORES, pa.Table.from_pylist(rows))
    table = store.read_table(tmp_path / "t.parquet", TRACE_SCORES).to_pandas()
    assert table[["seed", "epoch", "accuracy", "dev_accuracy"]].drop_duplicates().to_numpy().tolist() == [
        [7, 4, 0.9, 0.8]
    ]


def test_a_trace_without_any_defined_map_has_no_mean():
    (truth, other) = trace_rows(0, 1, 0.5, {"a": [np.zeros(2)]}, groups_of([1, 0]), ["region"])
    assert truth["attributed_fraction"] is None and truth["n"] == 0 and other["undefined"] == 1
