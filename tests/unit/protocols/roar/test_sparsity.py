"""The share of a text's importance held by its most important words."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from plumbline.attribution.files import read_importances, write_importances
from plumbline.protocols.roar.schemas import SPARSITY
from plumbline.protocols.roar.sparsity import sparsity_rows, sparsity_table
from plumbline.store import read_table
from plumbline.tables.export import write_formats


def by_top(scores: list[list[float]]) -> pd.Series:
    rows = sparsity_rows([np.array(text, dtype=np.float32) for text in scores])
    return pd.DataFrame(rows).set_index(["unit", "top"])["share"]


def counted(scores: list[list[float]]) -> set[int]:
    return {row["n"] for row in sparsity_rows([np.array(text, dtype=np.float32) for text in scores])}


def test_shares_of_one_text_by_hand():
    """Sorted 4, 3, 2, 1 of 10; of four words 10 and 20 percent are none, 30 and 40 one, 50 to 70 two, 80, 90 three."""
    share = by_top([[1, -4, 2, 3]])
    assert share["absolute"].tolist() == pytest.approx([0.4, 0.7, 0.9] + [1.0] * 7)
    assert share["relative"].tolist() == pytest.approx([0, 0, 0.4, 0.4, 0.7, 0.7, 0.7, 0.9, 0.9, 1.0])
    assert list(share["absolute"].index) == list(range(1, 11))
    assert list(share["relative"].index) == list(range(10, 101, 10))


def test_ties_share_alike():
    share = by_top([[2.0] * 20])
    assert share["absolute"].tolist() == pytest.approx(np.arange(1, 11) / 20)
    assert share["relative"].tolist() == pytest.approx(np.arange(1, 11) / 10)


def test_percents_are_of_whole_words_exactly():
    """0.7 * 90 is 62.99… in floating point, yet 70 percent of 90 words are 63."""
    assert by_top([[1.0] * 90])["relative", 70] == pytest.approx(63 / 90)


def test_texts_without_importance_are_left_out():
    texts = [[1.0, 0.0], [0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [], [1.0]]
    assert by_top(texts).tolist() == pytest.approx(by_top([[1.0, 0.0], [1.0]]).tolist())
    assert counted(texts) == {2} and by_top([[0.0], []]).isna().all() and counted([[0.0]]) == {0} == counted([])


def test_every_text_counts_the_same_whatever_its_length():
    assert by_top([[3.0, 1.0], [1.0] * 10])["absolute", 1] == pytest.approx((0.75 + 0.1) / 2)


def test_the_table_has_the_dev_split_of_each_seed(tmp_path):
    columns = {
        "seed": [0, 0, 1, 1, 0],
        "split": ["dev", "dev", "dev", "dev", "test"],
        "instance": [0, 1, 0, 1, 0],
        "target": [1] * 5,
        "scores": [[3.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.0, 9.0]],
    }
    write_importances(tmp_path / "scores", {"gradient": columns})
    scores = read_importances(tmp_path / "scores", "gradient", ["seed", "split", "scores"])
    cells = [{"dataset": "d", "model": "m", "measure": name, "variant": "plain"} for name in ("gradient", "attention")]
    table = sparsity_table(cells, iter([scores, scores]))
    paths = SimpleNamespace(parquet=tmp_path / "t.parquet", csv=tmp_path / "t.csv", latex=tmp_path / "t.tex")
    write_formats(paths, SPARSITY, table)
    rows = read_table(paths.parquet, SPARSITY).to_pandas()
    assert len(rows) == 2 * 2 * 30 and set(rows["measure"]) == {"gradient", "attention"}
    first = rows[(rows["unit"] == "absolute") & (rows["top"] == 1) & (rows["measure"] == "gradient")]
    assert first["share"].tolist() == pytest.approx([0.625, 1.0]) and first["n"].tolist() == [2, 1]
