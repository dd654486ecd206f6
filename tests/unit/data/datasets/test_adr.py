"""Tweets about drugs, on rows written in the form of the study's file."""

from pathlib import Path

import pytest

from plumbline.config.recipes import Preparation
from plumbline.data.corpus import Example
from plumbline.data.datasets.adr import adr
from plumbline.errors import PlumblineError
from plumbline.registry import Registry

HEADING = "text,label,exp_split"
ROWS = ['"user , this DRUG make me dizzy",1,train', '""" quoted DRUG """,0,test', "good # DRUG,0,train"]


def write(raw: Path, rows: list[str]) -> Path:
    (raw / "adr").mkdir(exist_ok=True)
    path = raw / "adr/adr.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_words_are_those_of_the_file(tmp_path: Path) -> None:
    write(tmp_path, [HEADING, *ROWS])
    corpus = adr(tmp_path, 0)
    assert corpus.classes == ["no reaction", "reaction"]
    assert corpus.examples == [
        Example("train", 1, ["user", ",", "this", "DRUG", "make", "me", "dizzy"]),
        Example("test", 0, ['"', "quoted", "DRUG", '"']),
        Example("dev", 0, ["good", "#", "DRUG"]),
    ]


def test_dev_of_the_file_stays(tmp_path: Path) -> None:
    write(tmp_path, ["exp_split,label,text", "train,1,a", "train,0,b", "dev,1,c", "test,0,d"])
    assert [e.split for e in adr(tmp_path, 0).examples] == ["train", "train", "dev", "test"]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (["tweet,label,exp_split"], "' does not start with the columns text, label, exp_split: get the file again."),
        ([HEADING, *ROWS, "a,1"], "', line 5 has 2 of 3 columns: get the file again."),
        (
            [HEADING, *ROWS, "a,yes,train"],
            "', line 5 has label 'yes' and split 'train'; they must be 0 or 1 and one of train, dev, test.",
        ),
        (
            [HEADING, *ROWS, "a,1,rest"],
            "', line 5 has label '1' and split 'rest'; they must be 0 or 1 and one of train, dev, test.",
        ),
    ],
)
def test_malformed_files_are_refused(tmp_path: Path, rows: list[str], sentence: str) -> None:
    path = write(tmp_path, rows)
    with pytest.raises(PlumblineError) as caught:
        adr(tmp_path, 0)
    assert str(caught.value) == f"'{path}{sentence}"


def test_the_missing_file_is_named_with_who_has_it(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"needs the file 'adr/adr\.csv'.*the authors of Jain & Wallace \(2019\)"):
        adr(tmp_path, 0)


def test_declared_preparation_is_a_recipe() -> None:
    recipe = Preparation(**Registry().get("dataset", "adr").preparation)
    assert (recipe.longer_than, recipe.shorter_than, recipe.minimum_document_frequency) == (5, 100, 2)
