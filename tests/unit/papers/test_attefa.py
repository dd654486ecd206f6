"""AtteFa's score, the consistency of its published tables, and ours."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from plumbline.models.distances import jensen_shannon, total_variation
from plumbline.papers.attefa import MOCK, SCORES, published_rows
from plumbline.papers.paper import Names, StudyResults
from plumbline.papers.reproduction import reproduction
from plumbline.papers.schemas import REPRODUCTION
from plumbline.protocols.adversary.schemas import ADVERSARY
from plumbline.protocols.adversary.table import attefa_score, attention_divergence, output_distance
from plumbline.store import read_table
from plumbline.tables.export import write_formats

# The largest rounding error of a printed number.
THREE_DECIMALS, FOUR_DECIMALS = 0.0005, 0.00005
CELL = {"dataset": "mine", "variant": "plain", "model": "net"}
AS_PUBLISHED = {"train": 8000, "dev": 1000, "test": 1000, "shortest": 50, "longest": 100, "words": "opinion-lexicon"}
AS_PUBLISHED |= {"position": "any", "strength": "any", "vocabulary": "training"}


def by_seed() -> pd.DataFrame:
    """Tables 4 and 5: a row per dataset, model and seed, and a column per score."""
    rows = published_rows().dropna(subset="seed")
    return rows.pivot(index=["dataset", "model", "seed"], columns="metric", values="value")


def test_the_score_by_hand():
    assert attefa_score(0.231, 0.393) == pytest.approx(0.815, abs=THREE_DECIMALS)
    assert attefa_score(0.25, np.log(2) / 2) == 1.0 and attefa_score(0.5, 0.1) == 1.0
    assert attefa_score(0.1, np.log(2)) == pytest.approx(0.2) and isinstance(attefa_score(0.1, 0.5), float)


def test_the_same_attention_is_faithful_and_only_missing_numbers_are_missing():
    with np.errstate(all="raise"):
        scores = attefa_score([0.0, 0.3, 0.0, 0.2, 0.0], [0.0, 0.0, -1e-9, 1e-13, 0.5])
    assert scores.tolist() == [1, 1, 1, 1, 0]
    assert np.isnan(attefa_score([np.nan, 0.1], [0.1, np.nan])).all()


def test_distances_are_those_that_adversaries_train_on():
    generator = torch.Generator().manual_seed(0)
    p, q = torch.rand(2, 7, 3, generator=generator, dtype=torch.float64).softmax(-1)
    np.testing.assert_allclose(output_distance(p.numpy(), q.numpy()), total_variation(p, q) / 2)
    np.testing.assert_allclose(attention_divergence(p.numpy(), q.numpy()), jensen_shannon(p, q), atol=1e-8)
    assert output_distance([0.9, 0.1], [0.3, 0.7]) == pytest.approx(0.3)
    assert attention_divergence([1, 0, 0], [0, 0.5, 0.5]) == pytest.approx(np.log(2))


def test_every_published_score_follows_from_its_tvd_and_jsd():
    """The score rises with TVD and falls with JSD, so the ends of their rounding intervals bound it."""
    rows = by_seed()
    assert len(rows) == 14 * 2 * 9
    lowest = attefa_score((rows["TVD"] - THREE_DECIMALS).clip(lower=0), rows["JSD"] + THREE_DECIMALS)
    highest = attefa_score(rows["TVD"] + THREE_DECIMALS, rows["JSD"] - THREE_DECIMALS)
    assert rows["AtteFa"].between(lowest - THREE_DECIMALS - 1e-12, highest + THREE_DECIMALS + 1e-12).all()


def test_published_means_and_spreads_are_those_of_the_nine_seeds():
    """A mean and a population standard deviation move by at most as much as each of their numbers."""
    rows = published_rows()
    means = rows[rows["table"] == "T3"].set_index(["dataset", "model", "metric"])
    seeds = by_seed().stack().groupby(["dataset", "model", "metric"])
    assert len(means) == 14 * 2 * len(SCORES) and seeds.count().eq(9).all()
    whole = means.index.get_level_values("metric") == "epoch"
    printed = np.where(means.index.get_level_values("metric") == "AtteFa", FOUR_DECIMALS, THREE_DECIMALS)
    bound = np.where(whole, 0.5, THREE_DECIMALS + printed) + 1e-9
    assert ((means["value"] - seeds.mean()).abs().reindex(means.index) <= bound).all()
    assert ((means["std"] - seeds.std(ddof=0)).abs().reindex(means.index) <= bound).all()


def test_every_published_row_has_registered_names():
    rows = published_rows()
    assert rows["dataset"].nunique() == 14 and set(rows["model"].dropna()) == {"bilstm-tanh", "average-tanh"}
    # The counts of the mock sets are printed once for all eight.
    assert len(rows) == 1480 + 7 * 6 and rows[rows["table"] == "T1"].groupby("dataset").size().eq(6).all()


def attacks(selected_on: str, values: dict[int, float], **more) -> list[dict]:
    """Rows of the table `adversary`; TVD and JSD follow from the score."""
    return [
        {**CELL, "adversary": "liar", "objective": "attefa", "base_seed": 10, "seed": seed, "selected_on": selected_on}
        | {"epoch": 7, "epochs": 17, "f1": 0.95, "tvd": value / 2, "jsd": 0.69, "attefa": value, "status": "ok"}
        | more
        for seed, value in values.items()
    ]


def table(kind: str = "mock-1", adversary: list[dict] | None = None, options: dict | None = None, **more):
    """The reproduction of a study with one dataset, one BiLSTM with two seeds, and adversaries of the first."""
    counts = {"texts": 8000, "instances": 8000, "texts_per_class": {"a": 4000, "b": 4001}, "mean_length": 75.4}
    counts |= {"instances_per_class": {"a": 4000, "b": 4000}}
    summary = {"dataset": "mine", "classes": ["a", "b"], "vocabulary_size": 9, "partial": {}, "dropped": {}}
    summary |= {"splits": {"train": counts, "dev": counts, "test": counts}} | more
    score = {**CELL, "split": "test", "metric": "f1"}
    performance = pd.DataFrame([{**score, "seed": 10, "value": 0.96}, {**score, "seed": 11, "value": 0.5}])
    names = Names(
        {"mine": kind}, {"net": "bilstm-tanh"}, {}, {"mine": AS_PUBLISHED | MOCK.get(kind, {}) | (options or {})}
    )
    columns = ADVERSARY.schema.names
    frame = None if adversary is None else pd.DataFrame(adversary, columns=columns)
    return reproduction(StudyResults(names, [summary], {"mine": {"net": "dev"}}, performance, adversary=frame))


def only(rows: pd.DataFrame, table: str, metric: str) -> pd.Series:
    (index,) = rows[(rows["table"] == table) & (rows["metric"] == metric)].index
    return rows.loc[index]


def test_means_over_seeds_are_compared_with_the_published_ones():
    """Published for the BiLSTM on Mock-1: AtteFa .0304 ± .0176, TVD .015 ± .009."""
    rows = table(adversary=attacks("test", {10: 0.03, 50: 0.12}) + attacks("dev", {10: 0.2, 50: 0.4, 257: 0.6}))
    means = rows[rows["table"] == "T3"].set_index(["metric", "selected_on"])
    assert len(means) == 2 * len(SCORES)
    score = means.loc[("AtteFa", "test")]
    assert score[["published", "published_spread"]].tolist() == [0.0304, 0.0176]
    assert score[["ours", "ours_spread", "tolerance"]].tolist() == pytest.approx([0.075, 0.045, 0.0528])
    assert score["within"] and score["n_seeds"] == 2 and "three published standard deviations" in score["note"]
    assert "ours on dev" not in score["note"]
    tvd = means.loc[("TVD", "test")]
    assert tvd[["ours", "tolerance", "within"]].tolist() == pytest.approx([0.0375, 0.027, True])
    assert means.loc[("JSD", "test"), ["tolerance", "within"]].tolist() == [0.015, True]
    dev = means.loc[("AtteFa", "dev")]
    assert (
        dev["ours"] == pytest.approx(0.4)
        and dev["n_seeds"] == 3
        and "selected on dev, without test data" in dev["note"]
    )
    assert dev[["tolerance", "within"]].isna().all() and means.loc["epoch", "within"].isna().all()


def test_a_mean_too_far_away_is_outside():
    rows = table(adversary=attacks("test", {10: 0.05, 50: 0.15}))
    assert only(rows, "T3", "AtteFa")[["ours", "within"]].tolist() == pytest.approx([0.1, False])


def test_single_seeds_are_those_that_both_have_and_are_not_judged():
    rows = table(adversary=attacks("test", {10: 0.03, 8988812: 0.12, 3: 0.9}) + attacks("dev", {10: 0.2}))
    seeds = rows[rows["table"] == "T4"]
    assert set(seeds["seed"]) == {10, 8988812} and set(seeds["selected_on"]) == {"test"}
    assert len(seeds) == 2 * len(SCORES) and seeds["within"].isna().all() and seeds["n_seeds"].eq(1).all()
    score = seeds[seeds["metric"] == "AtteFa"].set_index("seed")
    assert score.loc[10, ["published", "ours"]].tolist() == [0.05, 0.03]


def test_failed_seeds_are_left_out_and_noted():
    failed = attacks("test", {50: np.nan}, status="undefined", reason="training diverged")
    score = only(table(adversary=attacks("test", {10: 0.03}) + failed), "T3", "AtteFa")
    assert score["ours"] == pytest.approx(0.03) and score["n_seeds"] == 1 and score["within"]
    assert "1 of 2 seeds left out: training diverged" in score["note"]
    none = only(table(adversary=failed), "T3", "AtteFa")
    assert np.isnan(none["ours"]) and pd.isna(none["within"]) and none["n_seeds"] == 0


def test_other_objectives_are_not_compared_and_two_adversaries_are_distinguished():
    other = attacks("test", {10: 0.9}, objective="wiegreffe-pinter", adversary="other")
    rows = table(adversary=attacks("test", {10: 0.03}) + other)
    assert rows[rows["table"] == "T3"]["ours"].max() < 8 and "adversary '" not in " ".join(rows["note"])
    rows = table(adversary=attacks("test", {10: 0.03}) + attacks("test", {10: 0.04}, adversary="thief"))
    rows = rows[(rows["table"] == "T3") & (rows["metric"] == "AtteFa")]
    assert rows["ours"].tolist() == pytest.approx([0.03, 0.04]) and "adversary 'thief'" in rows["note"].iloc[1]


def test_the_base_score_is_that_of_the_attacked_seed():
    base = only(table(adversary=attacks("test", {10: 0.03})), "T2", "base_F1")
    assert base[["published", "ours", "n_seeds", "tolerance"]].tolist() == [0.974, 0.96, 1, 0.03]
    assert base["within"] and "ours on dev" in base["note"]
    both = table("sst").set_index("metric").loc["base_F1"]
    assert both["published"].tolist() == [0.831, 0.830] and both["ours"].tolist() == pytest.approx([0.73, 0.73])
    assert "Wiegreffe & Pinter" in both["note"].iloc[0] and "own base model" in both["note"].iloc[1]


def test_a_study_without_adversaries_has_no_rows_of_them():
    assert set(table()["table"]) == {"T1", "T2"} and set(table(adversary=[])["table"]) == {"T1", "T2"}


def test_counts_are_of_texts_before_the_filter():
    rows = table().set_index(["metric", "predicted_class"])
    assert rows.loc[("train_size", "0"), ["published", "ours", "within"]].tolist() == [4000, 4000, True]
    assert not rows.loc[("train_size", "1"), "within"] and rows.loc["train_avg_length"]["within"].tolist() == [True]
    filtered = {"texts": 9, "instances": 8, "texts_per_class": {"a": 3310, "b": 6}, "mean_length": 17.0}
    filtered |= {"instances_per_class": {"a": 3, "b": 5}}
    rows = table("sst", splits=dict.fromkeys(("train", "dev", "test"), filtered))
    rows = rows[rows["study"] == "AtteFa"].set_index(["metric", "predicted_class"])
    assert rows.loc[("train_size", "0"), "within"] and pd.isna(rows.loc["train_avg_length"]["within"].iloc[0])


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ({"train": 3000, "words": "vader"}, "generated with other options than published: train 3000, words vader"),
        ({"informative": 3}, "generated with other options than published: informative 3"),
        ({"position": "end"}, "generated with other options than published: position end"),
    ],
)
def test_a_mock_with_other_options_is_not_judged(options, note):
    rows = table(adversary=attacks("test", {10: 0.03}), options=options)
    assert len(rows) == len(table(adversary=attacks("test", {10: 0.03})))
    assert rows[["tolerance", "within"]].isna().all(axis=None) and rows["note"].str.contains(note).all()
    assert not rows["note"].str.contains("tolerance").any()


def test_a_sample_is_not_judged():
    rows = table(adversary=attacks("test", {10: 0.03}), dropped={"limit": {"train": 2000}})
    assert rows["within"].isna().all() and rows["note"].str.contains("a sample: 8000 of 10000 in train").all()


def test_seeds_stay_whole_in_every_form(tmp_path):
    paths = {key: tmp_path / f"t.{key}" for key in ("parquet", "csv", "latex")}
    write_formats(SimpleNamespace(**paths), REPRODUCTION, table(adversary=attacks("test", {90754789: 0.03})))
    rows = read_table(paths["parquet"], REPRODUCTION).to_pandas()
    assert set(rows["seed"].dropna()) == {90754789}
    assert ",90754789," in paths["csv"].read_text() and "90754789" in paths["latex"].read_text()
