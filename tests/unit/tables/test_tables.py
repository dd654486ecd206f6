import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from plumbline.conformance.protocols import OWN_TABLES
from plumbline.papers.jain_wallace import published_rows
from plumbline.papers.paper import Names, StudyResults
from plumbline.papers.quirks import TOPS, sparsity_rows
from plumbline.papers.reproduction import reproduction
from plumbline.protocols.agreement.by_text import summarise_texts
from plumbline.protocols.agreement.score import Agreement
from plumbline.protocols.attention.adversarial import AdversarialAttention
from plumbline.protocols.erasure.score import Erasure
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.protocols.performance.table import performance_rows
from plumbline.protocols.timings.table import timing_rows
from plumbline.store import read_table
from plumbline.tables.export import latex, write_formats
from plumbline.training.performance import PERFORMANCE_METRICS as METRICS

CELL = {"dataset": "sst", "variant": "plain", "model": "bilstm-tanh", "seeds": "0-1"}


def predictions(probabilities, labels, seed=0):
    n = len(labels)
    return pa.table(
        {
            "seed": [seed] * n,
            "split": ["test"] * n,
            "instance": range(n),
            "label": labels,
            "answers": pa.nulls(n),
            "probabilities": probabilities,
        }
    )


def test_metrics_by_hand():
    """Two of three positives found, one false alarm: precision 2/3, recall 2/3."""
    p = np.array([[0.1, 0.9], [0.4, 0.6], [0.7, 0.3], [0.2, 0.8], [0.9, 0.1]])
    labels = np.array([1, 1, 1, 0, 0])
    assert METRICS["accuracy"](p, labels) == pytest.approx(3 / 5)
    assert METRICS["f1"](p, labels) == pytest.approx(2 / 3)
    assert METRICS["macro_f1"](p, labels) == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert METRICS["roc_auc"](p, labels) == pytest.approx(4 / 6)


def test_diverged_and_one_class_are_rows_with_reasons():
    nan = predictions([[np.nan, np.nan]] * 2, [0, 1])
    single = predictions([[0.4, 0.6]] * 2, [1, 1], seed=1)
    rows = performance_rows([CELL, CELL], [nan, single]).set_index(["seed", "metric"])
    assert rows.loc[(0, "accuracy"), "reason"] == "training diverged" and np.isnan(rows.loc[(0, "accuracy"), "value"])
    assert rows.loc[(1, "roc_auc"), ["status", "reason"]].tolist() == ["undefined", "a class is absent"]
    assert rows.loc[(1, "accuracy"), ["status", "value"]].tolist() == ["ok", 1.0]


def test_tables_are_written_as_parquet_csv_and_latex(tmp_path):
    table = performance_rows([CELL], [predictions([[0.2, 0.8], [0.7, 0.3]], [1, 0])])
    paths = {key: tmp_path / f"t.{key}" for key in ("parquet", "csv", "latex")}
    write_formats(SimpleNamespace(**paths), PERFORMANCE, table)
    assert read_table(paths["parquet"], PERFORMANCE).num_rows == 5
    assert len(pd.read_csv(paths["csv"])) == 5
    text = paths["latex"].read_text()
    assert r"\toprule" in text and "macro f1" in text and "sst & plain & bilstm-tanh & " in text


def test_latex_gives_spread_over_seeds_and_escapes():
    row = {
        "dataset": "a_b",
        "variant": "plain",
        "model": "m",
        "split": "test",
        "metric": "f1",
        "status": "ok",
        "reason": None,
    }
    text = latex(PERFORMANCE, pd.DataFrame([{**row, "seed": 0, "value": 0.5}, {**row, "seed": 1, "value": 0.7}]))
    assert r"a\_b & plain & m & 0.60 $\pm$ 0.10" in text


def test_published_table_holds_the_studys_numbers():
    rows = published_rows()
    sst = rows[(rows["dataset"] == "sst") & (rows["metric"] == "kendall_tau")]
    cells = sst.set_index(["model", "measure_b", "predicted_class"])["value"]
    assert cells["bilstm-tanh", "gradient", "0"] == 0.40 and cells["bilstm-tanh", "leave-one-out", "1"] == 0.33
    assert cells["average-tanh", "gradient", "1"] == 0.69


def test_reproduction_has_ours_next_to_published():
    score = {"dataset": "mine", "variant": "plain", "model": "net", "split": "test", "metric": "f1"}
    scored = pd.DataFrame([{**score, "seed": 0, "value": 0.80}, {**score, "seed": 1, "value": 0.84}])
    tau = {"dataset": "mine", "variant": "plain", "model": "net", "measure_a": "att", "measure_b": "grad",
           "statistic": "kendall", "tokens": "text", "predicted_class": "0", "significant_fraction": 0.2}  # fmt: skip
    agreed = pd.DataFrame([{**tau, "seed": 0, "mean": 0.30}, {**tau, "seed": 1, "mean": 0.26}])
    counts = {"texts": 3322, "texts_per_class": {"negative": 3310, "positive": 12}, "instances": 3035,
              "instances_per_class": {"negative": 3034, "positive": 1}, "mean_length": 18.7}  # fmt: skip
    summary = {"dataset": "mine", "classes": ["negative", "positive"], "vocabulary_size": 9, "partial": {},
               "dropped": {}, "splits": dict.fromkeys(("train", "dev", "test"), counts)}  # fmt: skip
    names = Names({"mine": "sst"}, {"net": "bilstm-tanh"}, {"att": "attention", "grad": "gradient"}, {"mine": {}})
    other = reproduction(
        StudyResults(
            replace(names, model_options={"net": {"hidden": 8}}), [summary], {"mine": {"net": "dev"}}, scored, agreed
        )
    )
    assert (
        other[other["model"].notna()]["within"].isna().all()
        and other[other["model"].notna()]["note"].str.contains("not judged: hidden 8").all()
    )
    table = reproduction(StudyResults(names, [summary], {"mine": {"net": "dev"}}, scored, agreed))
    table = table[table["study"] == "Jain & Wallace 2019"].set_index(["metric", "predicted_class"])
    tau_row = table.loc[("kendall_tau", "0")]
    assert (tau_row["published"], tau_row["ours"], tau_row["within"]) == (0.40, pytest.approx(0.28), False)
    assert (tau_row["published_later"], tau_row["tolerance"]) == (pytest.approx(0.343), pytest.approx(0.079))
    assert tau_row["ours_spread"] == pytest.approx(0.02) and tau_row["n_seeds"] == 2
    assert "ours on dev" in tau_row["note"]
    assert table.loc[("train_size", "0"), "within"] and not table.loc[("train_size", "1"), "within"]
    assert table.loc["avg_length"]["within"].tolist() == [True]
    f1 = table.loc["test_F1"].iloc[0]
    assert f1["within"] and f1["ours"] == pytest.approx(0.82)
    assert table[["seed", "selected_on"]].isna().all(axis=None)


def test_of_several_entries_of_a_measure_the_first_is_compared_and_its_options_are_checked():
    tau = {"dataset": "mine", "variant": "plain", "model": "net", "seed": 0, "measure_a": "att", "tokens": "text",
           "statistic": "kendall", "predicted_class": "0", "significant_fraction": 0.2}  # fmt: skip
    agreed = pd.DataFrame(
        [{**tau, "measure_b": name, "mean": mean} for name, mean in (("usual", 0.38), ("other", 0.10))]
    )
    scored = pd.DataFrame(columns=["dataset", "variant", "model", "seed", "split", "metric", "value"])
    counts = {"instances": 1, "instances_per_class": {"negative": 1, "positive": 0}, "mean_length": 1.0}
    counts |= {"texts": 1, "texts_per_class": {"negative": 1, "positive": 0}}
    summary = {"dataset": "mine", "classes": ["negative", "positive"], "vocabulary_size": 9, "partial": {},
               "dropped": {}, "splits": dict.fromkeys(("train", "dev", "test"), counts)}  # fmt: skip
    for order, ours, within in ((["usual", "other"], 0.38, True), (["other", "usual"], 0.10, None)):
        measures = {"att": "attention"} | dict.fromkeys(order, "gradient")
        changed = {"other": {"norm": "l1"}}
        names = Names({"mine": "sst"}, {"net": "bilstm-tanh"}, measures, {"mine": {}}, measure_options=changed)
        table = reproduction(StudyResults(names, [summary], {"mine": {"net": "test"}}, scored, agreed))
        row = table[(table["metric"] == "kendall_tau") & (table["measure_b"] == "gradient")].iloc[0]
        assert (row["ours"], row["n_seeds"]) == (ours, 1)
        assert row["within"] is within or row["within"] == within
        assert ("not judged: norm l1" in row["note"]) == (within is None)


def std_of_agreement(values):
    rows = {"seed": 0, "predicted_class": 1, "measure_a": "a", "measure_b": "b", "statistic": "kendall"}
    rows |= {"tokens": "text", "p_value": 0.5, "length": 9, "status": "ok", "reason": None}
    return Agreement().summarise(pa.Table.from_pylist([rows | {"value": value} for value in values]))["std"]


def std_of_erasure(values):
    """The texts fall to nothing by 1, so that what each adds to a soft metric is its fall less the mean of falls."""
    rows = [
        {"seed": 0, "measure": "m", "fall_to_nothing": 1.0, "soft_fall_without": value, "soft_fall_alone": value}
        | dict.fromkeys(("comprehensiveness", "sufficiency", "normalised_aopc", "morf_lerf"), value)
        | {"comprehensiveness_at": [value], "sufficiency_at": [value]}
        for value in values
    ]
    return Erasure(ratios=[50]).summarise(pa.Table.from_pylist(rows))["std"]


def std_of_adversarial_attention(values):
    row = {"seed": 0, "predicted_class": 0, "max_attention": 0.1, "epsilon": 0.01, "feasible": 1}
    return AdversarialAttention().summarise(pa.Table.from_pylist([row | {"jsd": value} for value in values]))["jsd_std"]


def std_of_quirks(values):
    row = {"dataset": "d", "model": "m", "measure": "a", "top": TOPS[0]}
    rows = [
        row | {"seed": seed, "unit": unit, "share": value}
        for seed, value in enumerate(values)
        for unit in ("relative", "relative-published")
    ]
    return sparsity_rows(pd.DataFrame(rows))[["as_published_spread", "corrected_spread"]].stack()


def std_of_texts(values):
    """That of randomised weights and of reliability."""
    rows = pd.DataFrame({"seed": 0, "kendall": values, "spearman": values, "status": "ok"})
    return summarise_texts(rows, ["seed"])["kendall_std"]


def std_of_latex(values):
    row = {"dataset": "d", "variant": "plain", "model": "m", "split": "test", "metric": "f1", "status": "ok"}
    rows = [row | {"reason": None, "seed": seed, "value": value} for seed, value in enumerate(values)]
    (spread,) = re.findall(r"\\pm\$ ([\d.]+)", latex(PERFORMANCE, pd.DataFrame(rows)))
    return pd.Series([float(spread)])


@pytest.mark.parametrize(
    "spread_in",
    [std_of_agreement, std_of_erasure, std_of_adversarial_attention, std_of_quirks, std_of_texts, std_of_latex],
)
def test_standard_deviations_of_all_tables_are_those_of_the_population(spread_in):
    """Of two values that is half their difference; an estimate with ddof 1 would be √2 times as much."""
    found = spread_in([0.2, 0.6])
    assert len(found) and found.tolist() == pytest.approx([0.2] * len(found))


def test_every_table_with_a_deviation_is_among_them():
    """The spread of `reproduction` is tested where it is; a new table with one belongs into the test above."""
    named = {name for name, kind in OWN_TABLES.items() for column in kind.columns if _is_spread(column)}
    by_text = {"randomised_weights", "reliability"}
    assert named == {"agreement", "erasure", "adversarial_attention", "quirks", "reproduction"} | by_text


def _is_spread(column):
    return column == "std" or column.endswith(("_std", "_spread"))


def test_every_published_tau_has_the_authors_later_one():
    taus = published_rows().query("metric == 'kendall_tau' and table == 'T2'")
    assert len(taus) == 63 and taus["later"].notna().all() and (taus["value"] - taus["later"]).abs().max() < 0.3
    # The first stored run is that of the table, but for bAbI-1.
    assert (taus["value"] - taus["first"]).abs()[taus["dataset"] != "babi-1"].max() <= 0.0051


def test_models_that_are_not_in_the_paper_have_the_authors_stored_runs():
    taus = published_rows().query("metric == 'kendall_tau' and table == 'stored'")
    assert set(taus["model"]) == {"bilstm-dot", "cnn-tanh", "cnn-dot", "average-tanh", "average-dot"}
    assert len(taus) == 249 - 63 and taus["value"].notna().all() and taus["tolerance"].between(0.09, 0.33).all()
    assert (taus["tolerance"] >= (taus["value"] - taus["later"]).abs().fillna(0) - 1e-9).all()


def test_reproduction_of_a_study_without_counterpart_is_empty():
    summary = {"dataset": "movie", "classes": [], "vocabulary_size": 0, "splits": {}}
    table = reproduction(StudyResults(Names({"movie": "movie"}, {}, {}, {"movie": {}}), [summary], {}, pd.DataFrame()))
    assert len(table) == 0 and "published" in table


def test_a_model_that_did_not_run_on_a_dataset_has_no_rows():
    score = {"dataset": "other", "variant": "plain", "model": "net", "seed": 0, "split": "test", "metric": "f1"}
    counts = {"texts": 1, "texts_per_class": {"negative": 1, "positive": 0}, "instances": 1,
              "instances_per_class": {"negative": 1, "positive": 0}, "mean_length": 1.0}  # fmt: skip
    summary = {"dataset": "mine", "classes": ["negative", "positive"], "vocabulary_size": 9, "partial": {},
               "dropped": {}, "splits": dict.fromkeys(("train", "dev", "test"), counts)}  # fmt: skip
    names = Names({"mine": "sst"}, {"net": "bilstm-tanh"}, {}, {"mine": {}})
    table = reproduction(
        StudyResults(names, [summary], {"mine": {"net": "dev"}}, pd.DataFrame([{**score, "value": 0.8}]))
    )
    assert len(table) and table["model"].isna().all()


def test_timings_come_from_manifests():
    shared = {"rule": "train", "peak_rss": 3.0, "peak_gpu": 0.0, "device": "cpu", "token_budget": 512}
    part = {"keys": CELL, "seconds": 2.0, "startup_seconds": 1.0, "rows": 4, "rows_per_second": 2.0}
    part |= {"events": ["out of memory: token budget halved to 512"]}
    table = timing_rows([{**shared, "parts": [part]}])
    assert table.loc[0, ["rule", "model", "seeds", "rows"]].tolist() == ["train", "bilstm-tanh", "0-1", 4]
    assert pd.isna(table.loc[0, "measure"]) and pd.isna(table.loc[0, "event"])
    assert table.loc[1, ["model", "event"]].tolist() == ["bilstm-tanh", "out of memory: token budget halved to 512"]
    assert pd.isna(table.loc[1, "seconds"]) and table["seconds"].sum() == 2.0
