"""Recursive ROAR's published tables and ours."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from plumbline.papers.paper import Names, StudyResults
from plumbline.papers.recursive_roar import CORRECTED, published_rows
from plumbline.papers.reproduction import reproduction
from plumbline.protocols.bootstrap import mean_interval
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.protocols.roar.schemas import FAITHFULNESS
from plumbline.registry import Registry

DATASETS = {"sst", "imdb", "snli", "babi-1", "babi-2", "babi-3", "diabetes", "anemia"}
OURS = "integrated-gradient-published"
CURVE = {
    "n_levels": 11,
    "dataset": "mine",
    "model": "net",
    "strategy": "recursive",
    "unit": "relative",
    "measure": "ig",
}
CURVE |= {"metric": "macro_f1", "n_levels": 11, "status": "ok"}
MEASURES = {"ig": OURS, "right": "integrated-gradient", "attention": "attention", "chance": "random"}
# Train, dev and test: texts and their mean length.
SPLITS = {"train": (6579, 18.0), "dev": (848, 19.0), "test": (1776, 20.0)}


def cell(table: str, dataset: str, model: str | None, metric: str, measure: str | None = None) -> pd.Series:
    """The only published number of this kind."""
    rows = published_rows()
    here = (rows["table"] == table) & (rows["dataset"] == dataset) & (rows["metric"] == metric)
    for column, value in (("model", model), ("measure_a", measure)):
        here &= rows[column].isna() if value is None else rows[column] == value
    (index,) = rows[here].index
    return rows.loc[index]


def faithful(values: list[float], **more: Any) -> dict[str, Any]:
    """A row of the table `faithfulness`."""
    return CURVE | {"n_seeds": len(values), "per_seed": values, "faithfulness": float(np.mean(values))} | more


def table(*given: Any, **more: Any) -> pd.DataFrame:
    """The rows of this paper in the reproduction that `everything` makes."""
    rows = everything(*given, **more)
    return rows[rows["study"] == "Recursive ROAR"]


def everything(
    rows: list[dict[str, Any]] | None = None,
    scores: list[float] | None = None,
    kind: str = "sst",
    model: str = "bilstm-softmax",
    options: dict[str, Any] | None = None,
    changed: dict[str, Any] | None = None,
    select_on: str = "dev",
    measures: dict[str, str] | None = None,
    **more: Any,
) -> pd.DataFrame:
    """The reproduction of a study with one dataset and model; `more` are fields of its names."""
    classes = ["a", "b", "c"]
    splits = {
        split: {"texts": n, "instances": n, "mean_length": length}
        | {counts: dict.fromkeys(classes, n) for counts in ("texts_per_class", "instances_per_class")}
        for split, (n, length) in SPLITS.items()
    }
    summary = {"dataset": "mine", "classes": classes, "vocabulary_size": 9, "partial": {}, "dropped": {}}
    score = {"dataset": "mine", "variant": "plain", "model": "net", "split": "test"}
    metrics = {"macro_f1": 0.0, "accuracy": 0.1, "f1": 0.2}
    performance = pd.DataFrame(
        [
            score | {"metric": metric, "seed": seed, "value": value + more}
            for metric, more in metrics.items()
            for seed, value in enumerate(scores or [])
        ],
        columns=PERFORMANCE.schema.names,
    )
    usual = {"leaves_over": 5} if kind == "sst" else {}
    names = Names(
        {"mine": kind},
        {"net": model},
        measures or MEASURES,
        {"mine": usual | (options or {})},
        {"net": changed or {}},
        **more,
    )
    columns = FAITHFULNESS.schema.names
    frame = None if rows is None else pd.DataFrame(rows, columns=columns)
    return reproduction(
        StudyResults(
            names, [summary | {"splits": splits}], {"mine": {"net": select_on}}, performance, faithfulness=frame
        )
    )


def only(rows: pd.DataFrame, metric: str, measure: str | None = None) -> pd.Series:
    here = rows["metric"] == metric
    here &= rows["measure_a"].isna() if measure is None else rows["measure_a"] == measure
    (index,) = rows[here].index
    return rows.loc[index]


# Published numbers.


def test_percent_become_shares_and_lengths_and_sizes_stay():
    score = cell("T1", "sst", "bilstm-softmax", "macro_f1")
    assert score[["value", "ci_low", "ci_high"]].tolist() == pytest.approx([0.82, 0.81, 0.826])
    faithfulness = cell("T2", "snli", "bilstm-softmax", "faithfulness", "input-x-gradient")
    assert faithfulness[["value", "ci_low", "ci_high"]].tolist() == pytest.approx([-0.107, -0.164, -0.046])
    assert cell("T1", "anemia", None, "sequence_length")["value"] == 2267
    assert cell("T3", "snli", None, "train_size")["value"] == 549_367
    rows = published_rows()
    judged = rows.dropna(subset="ci_low")
    assert judged["value"].between(-1, 1).all() and judged["value"].between(judged.ci_low, judged.ci_high).all()
    assert set(judged["metric"]) == {"macro_f1", "accuracy", "faithfulness"}


def test_every_dataset_has_its_score_and_its_counts():
    rows = published_rows()
    assert set(rows["dataset"]) == DATASETS <= set(Registry().names("dataset"))
    for dataset, here in rows.groupby("dataset"):
        metric = "macro_f1" if dataset in ("sst", "imdb", "diabetes", "anemia") else "accuracy"
        scores = here[here["metric"] == metric]
        assert scores["table"].tolist() == ["T1"] * 2 and set(scores["model"]) == {"bilstm-softmax", "roberta"}
        counts = here[here["model"].isna()]
        assert sorted(counts["metric"]) == ["sequence_length", "test_size", "train_size", "validation_size"]
        assert set(here["metric"]) == {metric, "faithfulness", *counts["metric"]}


def test_the_scores_of_the_third_table_and_what_it_cites_are_left_out():
    rows = published_rows()
    assert set(rows[rows["table"] == "T3"]["metric"]) == {"train_size", "validation_size", "test_size"}
    assert rows["note"].isna().all()


def test_both_forms_of_integrated_gradients_have_the_published_numbers():
    rows = published_rows()
    rows = rows[rows["table"] == "T2"].set_index(["dataset", "model", "measure_a"])
    assert rows.index.is_unique and len(rows) == 8 * (5 + 4)
    by_measure = {measure: part.droplevel("measure_a") for measure, part in rows.groupby("measure_a")}
    assert set(by_measure) <= set(Registry().names("measure"))
    assert by_measure["integrated-gradient"]["value"].equals(by_measure[OURS]["value"])
    # Only the BiLSTM has attention.
    assert set(by_measure["attention"].index.get_level_values("model")) == {"bilstm-softmax"}
    assert all(len(part) == (8 if measure == "attention" else 16) for measure, part in by_measure.items())


# Ours. Published for the BiLSTM on SST: integrated gradients 37.8, from 32.5 to 42.4; macro-F1 82, from 81.0.


def test_a_mean_above_is_within_if_the_intervals_overlap():
    values = [0.44, 0.46, 0.48]
    row = only(table([faithful(values)]), "faithfulness", OURS)
    assert row[["published", "published_low", "published_high"]].tolist() == pytest.approx([0.378, 0.325, 0.424])
    low, _ = mean_interval(values)
    assert row["ours"] == pytest.approx(0.46) and row["n_seeds"] == 3 and low < 0.46
    assert row["tolerance"] == pytest.approx(0.424 - 0.378 + 0.46 - low)
    assert not row["within"] and low > 0.424
    near = [value - 0.04 for value in values]
    meeting = only(table([faithful(near)]), "faithfulness", OURS)
    assert meeting["within"] and mean_interval(near)[0] < 0.424 < meeting["ours"] + 0.005
    assert "the published 95% interval, widened by ours" in meeting["note"]


def test_a_mean_below_is_within_if_the_intervals_overlap():
    values = [0.26, 0.29, 0.32]
    _, high = mean_interval(values)
    row = only(table([faithful(values)]), "faithfulness", OURS)
    assert row["tolerance"] == pytest.approx(0.378 - 0.325 + high - 0.29)
    assert not row["within"] and 0.29 < high < 0.325
    near = [value + 0.02 for value in values]
    assert only(table([faithful(near)]), "faithfulness", OURS)["within"]
    assert mean_interval(near)[1] > 0.325 > float(np.mean(near))


@pytest.mark.parametrize(
    ("value", "tolerance", "within"),
    [(0.43, 0.046, False), (0.423, 0.046, True), (0.32, 0.053, False), (0.326, 0.053, True)],
)
def test_one_seed_has_no_interval_to_widen_the_published_one(value, tolerance, within):
    row = only(table([faithful([value])]), "faithfulness", OURS)
    assert row["tolerance"] == pytest.approx(tolerance) and row["within"] == within and row["n_seeds"] == 1


def test_seeds_that_agree_widen_nothing():
    assert only(table([faithful([0.4, 0.4])]), "faithfulness", OURS)["tolerance"] == pytest.approx(0.046)


def test_correct_integrated_gradients_are_shown_but_not_judged():
    rows = table([faithful([0.3, 0.5]), faithful([0.1, 0.3], measure="right")])
    right = only(rows, "faithfulness", "integrated-gradient")
    assert (right["published"], right["ours"]) == pytest.approx((0.378, 0.2))
    assert right[["tolerance", "within"]].isna().all() and right["note"] == CORRECTED
    assert only(rows, "faithfulness", OURS)["within"] is True


def test_only_recursive_relative_curves_that_are_defined_are_compared():
    others = [{"strategy": "roar"}, {"unit": "absolute"}, {"model": "other"}, {"dataset": "other"}]
    others += [{"status": "undefined", "per_seed": []}, {"measure": "attention"}]
    rows = table([faithful([0.9], **other) for other in others])
    assert rows[rows["metric"] == "faithfulness"]["measure_a"].tolist() == ["attention"]
    rows = table([faithful([0.9], **other) for other in others] + [faithful([0.4])])
    assert only(rows, "faithfulness", OURS)["ours"] == 0.4


def test_of_two_entries_of_a_measure_the_first_is_compared():
    measures = {"mine": OURS, "ig": OURS}
    rows = table([faithful([0.9]), faithful([0.4], measure="mine")], measures=measures)
    assert only(rows, "faithfulness", OURS)["ours"] == 0.4


def test_a_study_without_masking_or_scores_has_only_counts():
    sizes = {"sequence_length", "train_size", "validation_size", "test_size"}
    assert set(table()["metric"]) == set(table([])["metric"]) == sizes
    assert set(table(model="bilstm-tanh", scores=[0.82])["metric"]) == sizes


@pytest.mark.parametrize(
    ("kind", "metric", "ours"), [("sst", "macro_f1", 0.815), ("snli", "accuracy", 0.915), ("babi-2", "accuracy", 0.915)]
)
def test_scores_are_judged_by_the_metric_of_the_dataset(kind, metric, ours):
    values = [0.8, 0.815, 0.83]
    row = only(table(scores=values, kind=kind), metric)
    assert row["ours"] == pytest.approx(ours) and row["n_seeds"] == 3 and row["tolerance"] > 0
    if kind == "sst":
        _, high = mean_interval(values)
        assert row["tolerance"] == pytest.approx(0.82 - 0.81 + high - 0.815) and row["within"]


def test_the_mean_length_is_over_all_splits_with_two_special_tokens():
    rows = table()
    length = only(rows, "sequence_length")
    expected = (6579 * 18 + 848 * 19 + 1776 * 20) / (6579 + 848 + 1776) + 2
    assert length["ours"] == pytest.approx(expected) and length[["published", "tolerance"]].tolist() == [20, 1]
    assert length["within"] and length["model"] is None and pd.isna(length["n_seeds"])


def test_sizes_of_all_three_splits_must_be_the_published_ones():
    rows = table().set_index("metric")
    for metric, size in (("train_size", 6579), ("validation_size", 848), ("test_size", 1776)):
        assert rows.loc[metric, ["published", "ours", "tolerance", "within"]].tolist() == [size, size, 0, True]
    other = table(kind="imdb").set_index("metric")
    assert not other.loc[["train_size", "validation_size", "test_size"], "within"].any()


def test_other_data_are_not_judged():
    rows = table([faithful([0.4, 0.5])], [0.8, 0.83], options={"leaves_over": 0})
    assert len(rows) == len(table([faithful([0.4, 0.5])], [0.8, 0.83])) == 6
    assert rows[["tolerance", "within"]].isna().all(axis=None)
    assert rows["note"].str.contains("data other than published, and so not judged: leaves_over 0").all()
    assert not rows["note"].str.contains("tolerance").any()


def test_other_options_of_a_model_are_not_judged_but_its_data_are():
    rows = table([faithful([0.4, 0.5])], [0.8, 0.83], changed={"hidden": 8, "encoder": "gru"})
    of_model = rows["model"].notna()
    assert rows[of_model][["tolerance", "within"]].isna().all(axis=None) and of_model.sum() == 2
    note = "a model other than published, and so not judged: encoder gru, hidden 8"
    assert (rows[of_model]["note"] == note).all() and rows[~of_model]["within"].notna().all()


def test_corrected_measures_of_other_data_have_both_notes():
    rows = table([faithful([0.4], measure="right")], options={"leaves_over": 3})
    note = only(rows, "faithfulness", "integrated-gradient")["note"]
    assert note == f"{CORRECTED}; data other than published, and so not judged: leaves_over 3"


def test_jain_and_wallace_counted_sst_before_leaves_were_counted():
    for leaves, judged in ((5, False), (0, True)):
        rows = everything(options={"leaves_over": leaves})
        theirs = rows[(rows["study"] == "Jain & Wallace 2019") & rows["metric"].isin(["train_size", "test_size"])]
        assert len(theirs) and theirs["within"].notna().eq(judged).all()
        assert theirs["note"].str.contains("data other than published").ne(judged).all()
    # Other datasets are the same in both studies.
    theirs = everything(kind="snli")
    assert theirs[theirs["study"] == "Jain & Wallace 2019"]["within"].notna().any()


@pytest.mark.parametrize("select_on", ["dev", "test"])
def test_selection_on_test_data_is_noted_only_where_published(select_on):
    rows = table([faithful([0.4, 0.5])], [0.8, 0.83], select_on=select_on)
    assert not rows["note"].str.contains("selected on test data").any()
    # Jain & Wallace selected on test data, which is noted for their models.
    theirs = everything(scores=[0.8], model="bilstm-tanh", select_on=select_on, options={"leaves_over": 0})
    theirs = theirs[(theirs["study"] == "Jain & Wallace 2019") & theirs["model"].notna()]
    assert len(theirs) and theirs["note"].str.contains("on test data, ours on dev").eq(select_on == "dev").all()


@pytest.mark.parametrize(
    ("row", "more", "note"),
    [
        ({"n_levels": 5}, {}, "5 levels instead of 11, and so not judged"),
        ({}, {"masking_target": "predicted"}, "explains the predicted class, and so not judged"),
        (
            {},
            {"measure_options": {"attention": {"sign": "signed"}}},
            "a measure other than published, and so not judged",
        ),
    ],
)
def test_curves_other_than_published_are_not_judged(row, more, note):
    found = only(table([faithful([0.15, 0.16], measure="attention", **row)], **more), "faithfulness", "attention")
    assert found["within"] is None and note in found["note"]
    assert only(table([faithful([0.15, 0.16], measure="attention")]), "faithfulness", "attention")["within"]


def test_seeds_that_were_left_out_are_noted():
    left_out = "1 of 3 seeds left out: training diverged"
    found = only(table([faithful([0.15, 0.16], measure="attention", reason=left_out)]), "faithfulness", "attention")
    assert left_out in found["note"] and found["within"]
