"""Own data in a config: paths, labels and facts that follow from options, and faults before any job."""

import pickle
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from plumbline.config.external import locate_files
from plumbline.config.own_data import label_text, own_paths, split_of
from plumbline.config.resolve import resolve
from plumbline.config.resolved import Resolved
from plumbline.data.raw import check_raw, raw_files
from plumbline.errors import PlumblineError

STUDY = {"models": {"average-tanh": {}}, "measures": ["attention"]}
MINE = {"kind": "table", "path": "reviews.csv", "text": "body", "label": "stars"}
COMMIT = "0123456789abcdef" * 2 + "01234567"


def resolved(folder: Path, **others) -> Resolved:
    entry = {key: value for key, value in {**MINE, **others}.items() if value is not None}
    return resolve(locate_files({**STUDY, "datasets": {"mine": entry}}, [folder]))


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "reviews.csv").write_text("body;stars;why\ngood;5;1\nbad;1;1\n")
    return tmp_path / "study"


def test_the_file_is_found_next_to_the_config_and_is_an_input(folder):
    study = resolved(folder)
    check_raw(study, Path("raw"))
    assert raw_files(study, "mine", Path("raw")) == ["study/reviews.csv"]
    files = {split: "reviews.csv" for split in ("train", "val", "test")}
    assert own_paths("table", resolved(folder, path=files).options["dataset", "mine"]) == ["study/reviews.csv"] * 3


def test_labels_may_be_numbers_in_the_config(folder):
    options = resolved(folder, classes={1: "bad", 4.0: "good", "5": "good"}).options["dataset", "mine"]
    assert options["classes"] == {"1": "bad", "4": "good", "5": "good"}
    assert resolved(folder, classes=[5, 1.0]).options["dataset", "mine"]["classes"] == ["5", "1"]
    assert resolved(folder, classes={1: 0, 5: 1}).options["dataset", "mine"]["classes"] == {"1": "0", "5": "1"}
    with pytest.raises(PlumblineError, match=r"`datasets.mine.classes` has the key True, which is not text; put it in"):
        resolved(folder, classes={True: "good", False: "bad"})
    assert [label_text(label) for label in (1, 1.0, "1.0", " x ", True, None, float("nan"), "1.50", 0.5)] == [
        "1", "1", "1", "x", "true", "", "", "1.50", "0.5",
    ]  # fmt: skip


def test_names_of_splits():
    assert [split_of(name) for name in ("Train", " dev ", "VAL", "valid", "validation", "test", "fold")] == [
        "train", "dev", "dev", "dev", "dev", "test", "",
    ]  # fmt: skip


def test_task_and_evidence_follow_from_columns(folder):
    facts = resolved(folder, evidence="why").declarations["dataset", "mine"].facts
    assert (facts["task"], facts["evidence"]) == ("classification", "human")
    facts = resolved(folder, pair="why", evidence="why", evidence_source="rule").declarations["dataset", "mine"].facts
    assert (facts["task"], facts["evidence"]) == ("inference", "rule")
    assert resolved(folder, pair="why", task="paraphrase").declarations["dataset", "mine"].task == "paraphrase"
    assert resolved(folder).declarations["dataset", "mine"].evidence == ""


def test_options_can_be_sent_to_a_job(folder):
    options = resolved(folder, classes=["1", "5"], shares={"train": 0.5, "dev": 0.25, "test": 0.25}).options
    assert pickle.loads(pickle.dumps(options)) == options


CONFIG_FAULTS = {
    "no text": ({"text": None}, "text` is missing; dataset 'table' needs it. `text`: Column of the texts."),
    "unknown option": ({"column": "x"}, "`datasets.mine.column` (set to 'x') is not a known key"),
    "classes and answers": (
        {"classes": ["1", "5"], "answers": ["why"]},
        "`datasets.mine.answers` makes all answers classes; remove `datasets.mine.classes`.",
    ),
    "ending": ({"path": "a.xlsx"}, "`datasets.mine.path` is 'a.xlsx', which does not end in one of .csv, .tsv"),
    "encoding": ({"encoding": "utf-9"}, "`datasets.mine.encoding` is 'utf-9', which Python does not know"),
    "separator": ({"separator": "::"}, "`datasets.mine.separator` is '::'; write one character."),
    "column and shares": (
        {"split": "fold", "shares": {"train": 0.8, "dev": 0.1, "test": 0.1}},
        "`datasets.mine.split` names a column and `datasets.mine.shares` draws all splits; remove one.",
    ),
    "files and column": (
        {"path": {"train": "a.csv", "dev": "b.csv", "test": "c.csv"}, "split": "fold"},
        "`datasets.mine.path` has a file for each split and `datasets.mine.split` names a column; remove one.",
    ),
    "share of dev and shares": (
        {"dev_share": 0.1, "shares": {"train": 0.8, "dev": 0.1, "test": 0.1}},
        "`datasets.mine.dev_share` draws dev from train and `datasets.mine.shares` draws all splits; remove one.",
    ),
    "sum of shares": (
        {"shares": {"train": 0.8, "dev": 0.1, "test": 0.2}},
        "`datasets.mine.shares` is {train: 0.8, dev: 0.1, test: 0.2}; write positive shares that sum to 1.",
    ),
    "shares of two splits": (
        {"shares": {"train": 0.8, "test": 0.2}}, "`datasets.mine.shares` has no split 'dev'; add it.",
    ),
    "no file of dev": (
        {"path": {"train": "a.csv", "test": "b.csv"}},
        "`datasets.mine.path` has no split 'dev'; add it, or set `dev_share` to draw it from train.",
    ),
    "unknown split": (
        {"path": {"trian": "a.csv", "test": "b.csv"}},
        "`datasets.mine.path` names the split 'trian', which does not exist; did you mean 'train'?",
    ),
    "split twice": (
        {"path": {"train": "a.csv", "val": "b.csv", "dev": "c.csv", "test": "b.csv"}},
        "`datasets.mine.path` names the split 'dev' twice; remove one.",
    ),
    "one class": ({"classes": {"1": "bad", "2": "bad"}}, "`datasets.mine.classes` names 1 classes; write two or more"),
    "label twice": ({"classes": ["a", "b", "a"]}, "`datasets.mine.classes` lists a label twice; remove one."),
    "task without pair": (
        {"task": "inference"}, "`datasets.mine.task` is 'inference' and `datasets.mine.pair` is ''; name the column",
    ),
    "pair without task": ({"pair": "why", "task": "classification"}, "remove it, or set `task` to inference."),
    "dev share": ({"dev_share": 2}, "`datasets.mine.dev_share` is 2; it must be from 0 to 0.9."),
    "no revision": (
        {"kind": "hub", "name": "a/b", "path": None},
        "`datasets.mine.revision` is missing; write the commit hash of 'a/b'",
    ),
    "tables and shares": (
        {"kind": "hub", "name": "a/b", "path": None, "revision": COMMIT, "splits": {"train": "a", "dev": "b",
         "test": "c"}, "shares": {"train": 0.8, "dev": 0.1, "test": 0.1}},
        "`datasets.mine.splits` names a table for each split and `datasets.mine.shares` draws all splits; remove one.",
    ),
    "branch": (
        {"kind": "hub", "name": "a/b", "path": None, "revision": "main"},
        "`datasets.mine.revision` is 'main'; write the commit hash of 'a/b', 40 hexadecimal digits",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", CONFIG_FAULTS)
def test_a_fault_of_the_config_is_one_sentence(fault, folder):
    others, message = CONFIG_FAULTS[fault]
    with pytest.raises(PlumblineError) as error:
        resolved(folder, **others)
    assert message in str(error.value) and "\n" not in str(error.value)


FILE_FAULTS = {
    "file": ({"path": "none.csv"}, "`datasets.mine.path`: there is no 'none.csv' in the working folder, next to"),
    "text": ({"text": "bodi"}, "`datasets.mine.text`: 'study/reviews.csv' has no column 'bodi'; did you mean 'body'?"),
    "evidence": ({"evidence": "xxxxx"}, "`datasets.mine.evidence`: 'study/reviews.csv' has no column 'xxxxx'; choose"),
    "folder": (
        {"kind": "folder", "path": "reviews.csv", "text": None, "label": None},
        "`datasets.mine.path`: 'study/reviews.csv' is a file; give a folder of images.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FILE_FAULTS)
def test_a_fault_of_the_file_is_refused_before_any_job(fault, folder):
    others, message = FILE_FAULTS[fault]
    with pytest.raises(PlumblineError) as error:
        check_raw(resolved(folder, **others), Path("raw"))
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("found", [None, ModuleSpec("datasets", None)], ids=["nothing", "a folder of that name"])
def test_a_missing_package_is_named_with_its_extra(found, folder, monkeypatch):
    monkeypatch.setattr("plumbline.data.own_files.find_spec", lambda name: found)
    study = resolved(folder, kind="hub", path=None, name="a/b", revision=COMMIT)
    with pytest.raises(
        PlumblineError, match=r"needs plumbline's extra `hub`; install it with `pip install 'datasets>=4'`"
    ):
        check_raw(study, Path("raw"))
