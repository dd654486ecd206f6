"""Published numbers that rest on quirks, on hand-made tables."""

import pandas as pd
import pytest

from plumbline.papers.paper import Names
from plumbline.papers.quirks import QUIRK_LIST, quirk_rows
from plumbline.papers.schemas import REPRODUCTION
from plumbline.protocols.roar.sparsity import TOPS, top_shares

SONG = {"study": "A Song of (Dis)agreement", "table": "T5", "dataset": "sst-2", "metric": "kendall_tau"}
NAMES = Names(
    datasets={"imdb": "imdb", "snli": "snli"},
    models={"lstm": "bilstm-song", "bert": "distilbert", "faulty": "distilbert", "tanh": "bilstm-tanh"}
    | {"softmax": "bilstm-softmax"},
    measures={name: name for name in ("attention", "gradient", "leave-one-out")},
    dataset_options={},
    model_options={"faulty": {"after_attention": "untransposed"}},
)
NOTHING = pd.DataFrame(columns=["dataset", "variant", "model", "split", "metric", "value"])


def reproduction(*rows: dict) -> pd.DataFrame:
    usual = {"model": "lstm", "published": 0.5, "ours_spread": 0.01, "n_seeds": 3}
    return pd.DataFrame([usual | row for row in rows], columns=REPRODUCTION.schema.names)


def quirk_frame(*rows: dict, performance: pd.DataFrame = NOTHING, **tables: pd.DataFrame) -> pd.DataFrame:
    frame = quirk_rows(reproduction(*rows), NAMES, performance, **tables)
    return frame[frame["status"] == "ok"].set_index("quirk")


def pair(a: str, b: str, ours: float, **more: object) -> dict:
    return {**SONG, "measure_a": a, "measure_b": b, "ours": ours, **more}


def test_a_measure_is_listed_as_published_and_corrected():
    rows = quirk_frame(
        pair("lime", "grad-x-diff", 0.4),
        pair("lime", "deep-lift", 0.3),
        pair("lime", "integrated-gradient-pad", 0.9),
        # Another published number, without its corrected form.
        pair("rollout", "grad-x-diff", 0.2, published=0.6),
    )
    assert set(rows.index) == {"DeepLIFT without rules"}
    assert rows["published"].tolist() == [0.5, 0.6]
    assert rows["as_published"].tolist() == [0.4, 0.2] and rows["as_published_seeds"].tolist() == [3, 3]
    assert rows["corrected"].iloc[0] == 0.3 and pd.isna(rows["corrected"].iloc[1])
    assert rows["with"].iloc[0] == "measure `grad-x-diff`" and rows["model"].iloc[0] == "bilstm-song"


def test_two_faulty_measures_make_one_row():
    rows = quirk_frame(pair("grad-x-diff", "deep-shap-published", 0.4), pair("deep-lift", "deep-shap", 0.1))
    assert rows[["as_published", "corrected"]].to_numpy().tolist() == [[0.4, 0.1]]


def test_a_faulty_model_is_compared_with_a_correct_one_of_its_kind():
    rows = quirk_frame(
        {**SONG, "model": "bert", "metric": "test_accuracy", "ours": 0.9},
        {**SONG, "model": "faulty", "metric": "test_accuracy", "ours": 0.7},
    )
    row = rows.loc["weights after attention untransposed"]
    assert (row["as_published"], row["corrected"]) == (0.7, 0.9)


def test_adversaries_are_chosen_on_test_as_published():
    usual = {"study": "AtteFa", "table": "T3", "dataset": "sst", "model": "tanh", "metric": "AtteFa"}
    rows = quirk_frame({**usual, "selected_on": "test", "ours": 0.8}, {**usual, "selected_on": "dev", "ours": 0.7})
    row = rows.loc["adversaries chosen on test"]
    assert (row["as_published"], row["corrected"]) == (0.8, 0.7)


def test_swapped_labels_belong_to_the_other_pair():
    usual = {
        "model": "tanh",
        "statistic": "kendall",
        "predicted_class": "all",
        "tokens": "text",
        "n": 5,
        "status": "ok",
    }
    taus = {("attention", "gradient"): 0.1, ("attention", "leave-one-out"): 0.2, ("gradient", "leave-one-out"): 0.6}
    agreement = pd.DataFrame(
        [
            {**usual, "dataset": dataset, "measure_a": a, "measure_b": b, "mean": mean + more}
            for dataset, more in (("sst", 0.0), ("imdb", 0.1))
            for (a, b), mean in taus.items()
        ]
    )
    rows = quirk_frame(agreement=agreement).set_index("metric")
    third = rows.loc["fig3_mean_diff_LOOvsGrad_minus_AttnvsLOO"]
    assert (third["published"], third["as_published"], third["corrected"]) == pytest.approx((0.2, 0.5, 0.4))
    fourth = rows.loc["fig4_mean_diff_LOOvsGrad_minus_AttnvsGrad"]
    assert (fourth["as_published"], fourth["corrected"]) == pytest.approx((0.4, 0.5))


def test_a_swapped_column_belongs_to_the_other_dataset():
    usual = {"variant": "plain", "model": "softmax", "split": "test"}
    performance = pd.DataFrame(
        [
            {**usual, "dataset": "imdb", "metric": "macro_f1", "value": 0.9},
            {**usual, "dataset": "imdb", "metric": "accuracy", "value": 0.1},
            {**usual, "dataset": "snli", "metric": "accuracy", "value": 0.77},
        ]
    )
    rows = quirk_frame(performance=performance).set_index("dataset")
    assert rows.loc["imdb", ["published", "as_published", "corrected"]].tolist() == [0.78, 0.9, 0.77]
    assert rows.loc["snli", ["published", "as_published", "corrected"]].tolist() == [0.88, 0.77, 0.9]


def test_one_word_more_has_more_importance():
    importances = dict(zip(TOPS, top_shares(pd.Series([4.0, -3.0, 2.0, 1.0, 0.0]).to_numpy()), strict=True))
    assert importances["relative", 50] == pytest.approx(0.7)
    assert importances["relative-published", 50] == pytest.approx(0.9)
    assert importances["relative-published", 100] == 1.0
    rows = [
        {"dataset": "sst", "model": "m", "measure": "lime", "seed": seed, "unit": unit, "top": top, "share": share}
        for (unit, top), share in importances.items()
        for seed in (0, 1)
    ]
    row = quirk_frame(sparsity=pd.DataFrame(rows)).set_index("metric").loc["importance of the top 50 %"]
    assert (row["as_published"], row["corrected"]) == pytest.approx((0.9, 0.7))
    assert pd.isna(row["published"]) and row["corrected_seeds"] == 2 and row["corrected_spread"] == 0
    (single,) = (
        quirk_frame(sparsity=pd.DataFrame(rows[::2])).query("metric == 'importance of the top 50 %'").to_dict("records")
    )
    assert pd.isna(single["corrected_spread"]) and single["corrected_seeds"] == 1


def test_every_quirk_is_listed_with_a_reason_if_it_is_missing():
    rows = quirk_rows(reproduction(), NAMES, NOTHING)
    assert rows["quirk"].tolist() == [quirk.name for quirk in QUIRK_LIST]
    assert set(rows["status"]) == {"missing"} and rows["reason"].str.startswith("The study has neither").all()
    assert rows["what"].str.endswith(".").all() and rows["study"].notna().all()
