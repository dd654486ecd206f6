"""Precision, recall and optimum of rationales by hand, and rows without a known truth."""

import numpy as np
import pandas as pd
import pytest

from plumbline.attribution.files import write_importances
from plumbline.data.schemas import INSTANCES
from plumbline.errors import PlumblineError
from plumbline.protocols.explained import Explained
from plumbline.protocols.ground_truth.rationales import Rationales, optimum, optimum_curve
from plumbline.protocols.ground_truth.schemas import RATIONALE_SCORES, RATIONALES
from plumbline.store import read_table, write_json, write_table
from plumbline.training.schemas import PREDICTIONS

WORDS, TRUTH = np.array([10, 20, 10]), np.array([4, 2, 0])


def test_the_optimum_by_hand():
    # A share of .1 is 4 of 40 words, all of which can be among the 6 of the truth.
    assert optimum(WORDS, TRUTH, 0.1) == pytest.approx((1, 4 / 6))
    # A share of .2 is 8 words: the 6 of the truth and 2 others.
    assert optimum(WORDS, TRUTH, 0.2) == pytest.approx((6 / 8, 1))
    # In each text: 1, 2 and 1 words, of which 1, 2 and 0 can be of the truth; then 2, 4 and 2, of which 2, 2 and 0 can.
    assert optimum(WORDS, TRUTH, 0.1, each=True) == pytest.approx((3 / 4, 3 / 6))
    assert optimum(WORDS, TRUTH, 0.2, each=True) == pytest.approx((4 / 8, 4 / 6))


def test_the_optimum_of_an_empty_selection_or_truth_is_undefined():
    assert np.isnan(optimum(WORDS, TRUTH, 0).precision) and optimum(WORDS, TRUTH, 0).recall == 0
    precision, recall = optimum(WORDS, 0 * TRUTH, 0.1, each=True)
    assert np.isnan(recall) and precision == 0


def test_the_curve_has_the_optima_and_none_per_text_exceeds_that_of_the_dataset():
    rates = np.linspace(0.01, 1, 50)
    curve = optimum_curve(WORDS, TRUTH, rates)
    assert curve.columns.tolist() == [
        "selection_rate",
        *(c for c in RATIONALES.schema.names if "optimum" in c),
    ]
    assert curve["selection_rate"].tolist() == rates.tolist()
    row = curve.iloc[17]
    assert (row["optimum_precision"], row["optimum_recall"]) == optimum(WORDS, TRUTH, rates[17])
    for name in ("precision", "recall"):
        assert (curve[f"optimum_{name}_each"] <= curve[f"optimum_{name}"] + 1e-12).all()
    assert curve["optimum_precision"].is_monotonic_decreasing and curve["optimum_recall"].is_monotonic_increasing


GROUPS = [[0, 1, 0, 1], [2, 0, 1]]
SELECTED = {0: [[0.0, 1.0, 0.4, 0.0], [0.0, 0.0, 1.0]], 1: [[0.0] * 4, [0.0] * 3]}
PREDICTED = {0: [[0.2, 0.8], [0.9, 0.1]], 1: [[0.2, 0.8], [0.1, 0.9]]}


def cell(folder, manipulated=True, seeds=(0, 1), options=None):
    """Two test texts and one training text with special tokens around them; the labels are 1 and 0."""
    split, instance = ["test", "test", "train"], [0, 1, 0]
    words = [4, 3, 2]
    groups = [[-1, *own, -1] for own in [*GROUPS, [0, 0]]] if manipulated else [None] * 3
    texts = folder / "instances.parquet"
    columns = {
        "split": split,
        "instance": instance,
        "label": [1, 0, 0],
        "tokens": [["w"] * (n + 2) for n in words],
        "ids": [[5] * (n + 2) for n in words],
        "maskable": [[False, *[True] * n, False] for n in words],
        "groups": groups,
    }
    write_table(texts, INSTANCES, columns)
    summary = folder / "dataset.json"
    write_json(summary, {"manipulation": {"groups": ["articles", "other articles"]}} if manipulated else {})
    keys = {
        "seed": [seed for seed in seeds for _ in range(2)],
        "split": ["test"] * 2 * len(seeds),
        "instance": [1, 0] * len(seeds),
    }
    predictions, importances = folder / "predictions.parquet", folder / "selection.parquet"
    columns = {"label": [0, 1] * len(seeds), "probabilities": [row for seed in seeds for row in PREDICTED[seed][::-1]]}
    write_table(predictions, PREDICTIONS, keys | columns)
    scores = [row for seed in seeds for row in SELECTED[seed][::-1]]
    write_importances(importances, {"selection": keys | {"scores": scores}})
    return Explained(
        predictions,
        {"selection": importances},
        list(seeds),
        ["test"],
        texts,
        summary=summary,
        model_options={"rate": 0.2} if options is None else options,
    )


def scored(explained, folder, **options):
    rationales = Rationales(**options)
    write_table(folder / "scores.parquet", RATIONALE_SCORES, rationales.score(explained))
    table = read_table(folder / "scores.parquet", RATIONALE_SCORES)
    summary = rationales.summarise(table)
    keys = {"dataset": "beer", "variant": "article", "model": "rationale-rl"}
    write_table(folder / "table.parquet", RATIONALES, summary.assign(**keys).to_dict("list"))
    return table.to_pandas(), read_table(folder / "table.parquet", RATIONALES).to_pandas()


def test_precision_and_recall_by_hand(tmp_path):
    scores, table = scored(cell(tmp_path), tmp_path)
    first = scores[scores["seed"] == 0].set_index("instance")
    assert first.loc[0, ["words", "selected", "truth", "hits"]].tolist() == [4, 2, 2, 1]
    assert first.loc[1, ["words", "selected", "truth", "hits"]].tolist() == [3, 1, 1, 1]
    row = table.iloc[0]
    assert row["selection_rate"] == pytest.approx(3 / 7) and row["truth_rate"] == pytest.approx(3 / 7)
    assert (row["precision"], row["recall"]) == pytest.approx((2 / 3, 2 / 3))
    # The truth has as many words as are selected; per text 12/7 and 9/7 are selected, of which 12/7 and 1 can be true.
    assert (row["optimum_precision"], row["optimum_recall"]) == pytest.approx((1, 1))
    assert (row["optimum_precision_each"], row["optimum_recall_each"]) == pytest.approx((19 / 21, 19 / 21))
    assert (row["accuracy"], row["n"], row["target_rate"], row["status"]) == (1, 2, 0.2, "ok")


def test_a_seed_that_selects_nothing_has_a_reason(tmp_path):
    row = scored(cell(tmp_path), tmp_path)[1].iloc[1]
    assert (row["status"], row["reason"]) == ("undefined", "no word is selected")
    assert row["selection_rate"] == row["recall"] == row["optimum_recall"] == 0
    assert pd.isna(row["precision"]) and pd.isna(row["optimum_precision"]) and row["accuracy"] == 0.5


def test_without_a_manipulation_there_is_no_truth(tmp_path):
    scores, table = scored(cell(tmp_path, manipulated=False, seeds=(0,), options={}), tmp_path)
    assert scores["truth"].isna().all() and scores["hits"].isna().all()
    row = table.iloc[0]
    assert (row["status"], row["reason"]) == ("undefined", "nothing was manipulated")
    assert row["selection_rate"] == pytest.approx(3 / 7) and row["accuracy"] == 1
    about = ["target_rate", "truth_rate", "precision", "recall", *(c for c in table.columns if "optimum" in c)]
    assert table[about].isna().all(axis=None)


def test_another_measure_must_be_in_the_study(tmp_path):
    with pytest.raises(PlumblineError, match="reads the measure 'lime', which the study does not have"):
        Rationales(measure="lime").score(cell(tmp_path))
