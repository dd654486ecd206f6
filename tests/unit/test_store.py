import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from plumbline import store
from plumbline.attribution.schemas import ATTRIBUTIONS
from plumbline.errors import PlumblineError
from plumbline.training.schemas import PREDICTIONS

ROWS = {
    "measure": ["gradient", "gradient"],
    "seed": [0, 0],
    "split": ["test", "test"],
    "instance": [1, 2],
    "target": [1, None],
    "scores": [[0.5], [0.25, 1.0]],
}


def test_ragged_columns_and_nulls_come_back(tmp_path: Path):
    path = tmp_path / "a.parquet"
    store.write_table(path, ATTRIBUTIONS, ROWS)
    table = store.read_table(path, ATTRIBUTIONS)
    assert table["scores"].to_pylist() == ROWS["scores"] and table["target"].to_pylist() == [1, None]
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"


def test_same_rows_give_same_bytes(tmp_path: Path):
    for name in "ab":
        store.write_table(tmp_path / name, ATTRIBUTIONS, ROWS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"extra": [1, 2]}, "columns differ in extra"),
        ({"scores": [["a"], ["b"]]}, "cannot be written"),
        ({"split": [None, "test"]}, "column 'split' has missing values"),
        ({"seed": [1]}, "cannot be written"),
    ],
)
def test_write_is_checked_and_leaves_nothing(tmp_path: Path, change, complaint):
    with pytest.raises(PlumblineError, match=complaint):
        store.write_table(tmp_path / "a.parquet", ATTRIBUTIONS, {**ROWS, **change})
    assert os.listdir(tmp_path) == []


def test_failed_write_keeps_the_old_file(tmp_path: Path):
    path = tmp_path / "x.json"
    store.write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        store.write_json(path, {"a": object()})
    with pytest.raises(RuntimeError), store.replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert store.read_json(path) == {"a": 1} and os.listdir(tmp_path) == ["x.json"]


def test_damaged_parquet_is_named(tmp_path: Path):
    path = tmp_path / "a.parquet"
    store.write_table(path, ATTRIBUTIONS, ROWS)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(PlumblineError, match=r"a\.parquet' is damaged and cannot be read as Parquet"):
        store.read_table(path, ATTRIBUTIONS)


def test_damage_inside_the_pages_is_noticed(tmp_path: Path):
    path = tmp_path / "a.parquet"
    store.write_table(path, ATTRIBUTIONS, {**ROWS, "scores": [np.random.default_rng(0).random(500)] * 2})
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 4 : len(whole) // 2] = bytes(len(whole) // 2 - len(whole) // 4)
    path.write_bytes(whole)
    with pytest.raises(PlumblineError, match="damaged"):
        store.read_table(path, ATTRIBUTIONS)


def test_other_kind_or_version_is_refused(tmp_path: Path):
    path = tmp_path / "a.parquet"
    store.write_table(path, ATTRIBUTIONS, ROWS)
    with pytest.raises(PlumblineError, match="holds 'attributions' version 4, not 'predictions' version 2"):
        store.read_table(path, PREDICTIONS)
    newer = store.TableSchema("attributions", ATTRIBUTIONS.version + 1, ATTRIBUTIONS.schema)
    with pytest.raises(PlumblineError, match="version 4, not 'attributions' version 5"):
        store.read_table(path, newer)


def test_a_column_that_may_be_null_may_be_left_out_and_no_other(tmp_path: Path):
    path = tmp_path / "a.parquet"
    short = {name: values for name, values in ROWS.items() if name not in ("pair", "specials")}
    store.write_table(path, ATTRIBUTIONS, short)
    assert store.read_table(path, ATTRIBUTIONS)["pair"].null_count == 2
    store.write_table(path, ATTRIBUTIONS, pa.table(store.read_table(path, ATTRIBUTIONS)).drop_columns(["pair"]))
    assert store.read_table(path, ATTRIBUTIONS)["pair"].null_count == 2
    with pytest.raises(PlumblineError, match=r"its columns differ in pears, scores\."):
        scoreless = {name: values for name, values in short.items() if name != "scores"}
        store.write_table(path, ATTRIBUTIONS, {**scoreless, "pears": [1, 2]})


def test_foreign_columns_are_refused(tmp_path: Path):
    path = tmp_path / "a.parquet"
    table = pa.table({"seed": [1]}).replace_schema_metadata(
        {"plumbline.artefact": "attributions", "plumbline.version": "4"}
    )
    pq.write_table(table, path)
    with pytest.raises(PlumblineError, match="does not have the columns of 'attributions' version 4"):
        store.read_table(path, ATTRIBUTIONS)


def test_tensors_by_prefix(tmp_path: Path):
    path = tmp_path / "w.safetensors"
    store.write_tensors(path, {"0/a": torch.ones(2), "1/a": torch.zeros(2), "10/a": torch.full((2,), 3.0)})
    assert store.read_tensors(path, "1/")["a"].tolist() == [0, 0]
    path.write_bytes(b"nonsense")
    with pytest.raises(PlumblineError, match="damaged and cannot be read as safetensors"):
        store.read_tensors(path)


def test_no_pickle_anywhere():
    project = Path(__file__).parents[2]
    sources = [*project.glob("workflow/**/*.py"), *project.glob("rules/*.smk")]
    calls = ("import pickle", "torch.save", "torch.load", "joblib.dump", "np.save(", "allow_pickle=True", "to_pickle")
    assert [str(p) for p in sources for call in calls if call in p.read_text(encoding="utf-8")] == []
