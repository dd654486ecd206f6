from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from plumbline.attribution.files import write_importances
from plumbline.attribution.schemas import ATTRIBUTIONS
from plumbline.conformance import example_explained
from plumbline.errors import PlumblineError
from plumbline.protocols.agreement.score import Agreement
from plumbline.protocols.explained import Explained
from plumbline.protocols.schemas import SCORES
from plumbline.store import read_table, write_table
from plumbline.training.schemas import PREDICTIONS


def explained(folder: Path, scores: dict[str, list[list[float]]], probabilities: list[list[float]]) -> Explained:
    keys = {
        "seed": [7] * len(probabilities),
        "split": ["test"] * len(probabilities),
        "instance": range(len(probabilities)),
    }
    label = [0] * len(probabilities)
    write_table(folder / "p", PREDICTIONS, {**keys, "label": label, "probabilities": probabilities})
    for measure, rows in scores.items():
        write_importances(folder / measure, {measure: {**keys, "target": [None] * len(rows), "scores": rows}})
    return Explained(folder / "p", {measure: folder / measure for measure in scores}, [7], ["test"])


def test_every_row_equals_scipy(tmp_path):
    cell = example_explained(tmp_path)
    rows = pd.DataFrame(Agreement(statistics=["kendall", "spearman", "pearson"]).score(cell))
    assert len(rows) == 2 * 24 * 3 * 3
    tables = {
        m: read_table(p, ATTRIBUTIONS).to_pandas().set_index(["seed", "instance"])["scores"]
        for m, p in cell.importances.items()
    }
    scipy = {"kendall": kendalltau, "spearman": spearmanr, "pearson": pearsonr}
    for row in rows.sample(60, random_state=0).itertuples():
        a, b = (tables[m][row.seed, row.instance].astype(float) for m in (row.measure_a, row.measure_b))
        expected = scipy[row.statistic](a, b)
        np.testing.assert_allclose([row.value, row.p_value], [expected.statistic, expected.pvalue], atol=1e-10)


def test_undefined_instances_are_rows_with_reasons_and_are_counted(tmp_path):
    cell = explained(
        tmp_path,
        {
            "a": [[1, 2, 3], [1, 1, 1], [5], [1, 2, float("nan")], [3, 2, 1]],
            "b": [[1, 2, 3], [1, 2, 3], [1], [1, 2, 3], [1, 2, 3]],
        },
        [[0.9, 0.1]] * 4 + [[0.2, 0.8]],
    )
    protocol = Agreement(statistics=["kendall"])
    scores = protocol.score(cell)
    rows = pd.DataFrame(scores)
    assert rows["reason"].fillna("").tolist() == [
        "",
        "constant importances",
        "fewer than two words",
        "importances are not finite",
        "",
    ]
    assert rows["status"].tolist() == ["ok", "dropped", "dropped", "dropped", "ok"]
    write_table(tmp_path / "s", SCORES, scores)
    table = protocol.summarise(read_table(tmp_path / "s", SCORES)).set_index("predicted_class")
    assert table.loc["0", ["n", "dropped", "mean"]].tolist() == [1, 3, 1.0]
    assert table.loc["1", ["n", "dropped", "mean"]].tolist() == [1, 0, -1.0]
    assert table.loc["all", ["n", "dropped", "mean", "std"]].tolist() == [2, 3, 0.0, 1.0]


def test_summary_by_hand():
    """Three instances of class 1: mean 0.4, population standard deviation, two of three significant."""
    count = 3
    table = pa.table(
        {
            "seed": [0] * count, "split": ["test"] * count, "instance": range(count), "predicted_class": [1] * count,
            "measure_a": ["a"] * count, "measure_b": ["b"] * count, "statistic": ["kendall"] * count,
            "tokens": ["text"] * count, "value": [0.1, 0.4, 0.7], "p_value": [0.5, 0.05, 0.01],
            "length": [9] * count, "status": ["ok"] * count,
            "reason": pa.nulls(count, pa.string()),
        }
    )  # fmt: skip
    row = Agreement().summarise(table).set_index("predicted_class").loc["1"]
    assert row["mean"] == pytest.approx(0.4) and row["std"] == pytest.approx(np.sqrt(0.06))
    assert row["significant_fraction"] == pytest.approx(2 / 3)


def test_more_than_three_classes_are_reported_together(tmp_path):
    cell = explained(tmp_path, {"a": [[1, 2]] * 4, "b": [[1, 2]] * 4}, np.eye(4).tolist())
    write_table(tmp_path / "s", SCORES, Agreement().score(cell))
    assert Agreement().summarise(read_table(tmp_path / "s", SCORES))["predicted_class"].tolist() == ["all"]


def test_top_k_has_no_p_value_and_uses_the_studys_k(tmp_path):
    statistics = ["top-k-fagin", "top-k-jain-wallace", "top-k-neely"]
    rows = pd.DataFrame(Agreement(statistics=statistics).score(example_explained(tmp_path)))
    assert rows["p_value"].isna().all()
    low = rows["statistic"].map({"top-k-fagin": 0, "top-k-jain-wallace": 0, "top-k-neely": -1})
    assert rows["value"].between(low, 1).all() and (rows["value"] < 0).any()
    write_table(tmp_path / "s", SCORES, Agreement(statistics=["top-k-fagin"]).score(example_explained(tmp_path)))
    assert Agreement().summarise(read_table(tmp_path / "s", SCORES))["significant_fraction"].isna().all()


def test_rows_are_matched_by_instance_not_by_position(tmp_path):
    cell = explained(tmp_path, {"a": [[1, 2, 3], [4, 5]], "b": [[1, 2, 3], [9, 8]]}, [[1, 0]] * 2)
    expected = pd.DataFrame(Agreement().score(cell))
    table = read_table(tmp_path / "b", ATTRIBUTIONS).take([1, 0])
    write_table(tmp_path / "b", ATTRIBUTIONS, table)
    pd.testing.assert_frame_equal(pd.DataFrame(Agreement().score(cell)), expected)


def test_missing_instances_and_wrong_lengths_are_named(tmp_path):
    cell = explained(tmp_path, {"a": [[1, 2], [1, 2]], "b": [[1, 2], [1, 2]]}, [[1, 0]] * 2)
    write_table(tmp_path / "b", ATTRIBUTIONS, read_table(tmp_path / "b", ATTRIBUTIONS).slice(0, 1))
    with pytest.raises(PlumblineError, match="'b', seed 7, lack 1 of 2 instances, such as instance 1 of split 'test'"):
        Agreement().score(cell)
    cell = explained(tmp_path, {"a": [[1, 2]], "b": [[1, 2, 3]]}, [[1, 0]])
    with pytest.raises(PlumblineError, match="Measures 'b' and 'a' differ in the number of scores per instance"):
        Agreement().score(cell)
