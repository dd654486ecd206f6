"""AG News, on rows written in its form."""

from pathlib import Path

import pytest

from plumbline.config.recipes import Preparation
from plumbline.data.datasets.agnews import agnews
from plumbline.errors import PlumblineError
from plumbline.registry import Registry

ROWS = [
    '"3","Oil up","Prices rise, the ""experts"" say\\band fall in 2004."',
    '"2","A game","They won."',
    '"1","A vote","Polls &lt;b&gt;open&lt;/b&gt;"',
]


def write(raw: Path, rows: list[str] = ROWS, test: list[str] = ROWS) -> Path:
    (raw / "agnews").mkdir()
    for name, lines in (("train", rows), ("test", test)):
        (raw / f"agnews/{name}.csv").write_bytes(("\r\n".join(lines) + "\r\n").encode())
    return raw / "agnews/train.csv"


def test_labels_and_words(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    write(tmp_path)
    corpus = agnews(tmp_path, 0)
    assert corpus.classes == ["world", "business"]
    assert corpus.dropped == {"other topics": {"train": 1, "test": 1}}
    business = ["prices", "rise", ",", "the", '"', "experts", '"', "say\\band", "fall", "in", "qqq", "."]
    assert [(e.split, e.label) for e in corpus.examples] == [("train", 1), ("dev", 0), ("test", 1), ("test", 0)]
    assert corpus.examples[0].tokens == corpus.examples[2].tokens == business


def test_dev_is_the_studys(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    write(tmp_path, [f'"{1 + 2 * (k % 2)}","t","text {"a" * k}"' for k in range(20)])
    first, second = (agnews(tmp_path, seed).examples for seed in (0, 1))
    assert [len(e.tokens[1]) if len(e.tokens) > 1 else 0 for e in first if e.split == "dev"] == [4, 11, 17]
    assert first == second


@pytest.mark.parametrize("row", ['"5","t","d"', '"1","t"', '"1","t","d","e"', "1"])
def test_malformed_rows_are_named(tmp_path: Path, row: str) -> None:
    path = write(tmp_path, [*ROWS, row])
    with pytest.raises(PlumblineError) as caught:
        agnews(tmp_path, 0)
    assert str(caught.value) == (
        f"'{path}', line 4 does not have a class from 1 to 4, a title and a description: download the file again."
    )


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_bytes(b'"1","t","caf\xe9"\n')
    with pytest.raises(PlumblineError, match=r"train\.csv', line 1 is not utf-8 text"):
        agnews(tmp_path, 0)
    path.write_text('"1","t","' + "never closed " * 20000)
    with pytest.raises(PlumblineError, match=r"train\.csv', line 1 is not a row of a CSV file \(field larger than"):
        agnews(tmp_path, 0)
    path.unlink()
    with pytest.raises(PlumblineError, match=r"needs the file 'agnews/train\.csv', which"):
        agnews(tmp_path, 0)


def test_declared_preparation_is_a_recipe() -> None:
    recipe = Preparation(**Registry().get("dataset", "agnews").preparation)
    assert (recipe.longer_than, recipe.shorter_than, recipe.minimum_document_frequency) == (None, None, 5)
