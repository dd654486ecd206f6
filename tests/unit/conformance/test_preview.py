"""`plumbline check my.yaml`: what the preview of own data says, by hand."""

from pathlib import Path

import pytest
import yaml

from plumbline.cli import main

STUDY = {"models": {"average-tanh": {}}, "measures": ["attention"]}
MINE = {"kind": "table", "path": "mine.csv", "text": "body", "label": "stars", "split": "part", "tokens": "spaces"}


def write(folder: Path, rows: list[str], heading: str = "body,stars,part", **others) -> str:
    (folder / "mine.csv").write_text("\n".join([heading, *rows]) + "\n")
    config = folder / "my.yaml"
    config.write_text(yaml.safe_dump({**STUDY, "datasets": {"mine": {**MINE, **others}}}))
    return str(config)


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")


ROWS = [
    "a b c,1,train", "a b,2,train", "a b c d e f g h i j k l m n o p q r s t u v,1,train",
    "a,1,dev", "b,2,dev", "a b c,1,test", "c,2,test", " ,2,test", "d,3,test",
]  # fmt: skip


def test_counts_lengths_drops_repeats_and_rows(tmp_path, capsys):
    config = write(tmp_path, ROWS, classes={"1": "low", "2": "high"})
    assert main(["check", config]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "dataset mine: conforms (7 texts)",
        "                  train      dev     test",
        " low                  2        1        1",
        " high                 1        1        1",
        " all                  3        2        2",
        " median words         3        1        2",
        " 95% words           20        1        3",
        " longest words       22        1        3",
        " dropped: empty text: 1 of test",
        " dropped: label not in classes: 1 of test",
        " repeated: 1 texts repeat another; 1 of 2 test texts are also in train",
        " train low  a b c",
        " train high a b",
        " train low  a b c d e f g h i j k l m n…",
        " dev   low  a",
        " dev   high b",
        " test  low  a b c",
        " test  high c",
    ]


def test_evidence_second_texts_and_drawn_splits_are_shown(tmp_path, capsys):
    rows = [f"t{k} u v,{k % 2},0 1 1,q{k}" for k in range(40)]
    config = write(tmp_path, rows, "body,stars,why,other", split="", evidence="why", pair="other")
    config_text = yaml.safe_load(Path(config).read_text())
    config_text["models"] = {"bilstm-tanh": {}}
    Path(config).write_text(yaml.safe_dump(config_text))
    assert main(["check", config]) == 0
    out = capsys.readouterr().out
    assert " splits: drawn by shares 0.8/0.1/0.1, seed 0, stratified true\n dropped: nothing\n" in out
    assert " train 0 t0 *u* *v* | q0\n" in out and out.count(" | q") == 10


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"text": "bodi"}, "dataset mine: `datasets.mine.text`: "),
        ({"kind": "tabel"}, "my.yaml: `datasets.mine.kind`: There is no dataset 'tabel'; did you mean 'table'?"),
        ({"classes": ["1", "9"]}, "dataset mine: No row has the class '9'; correct `classes`"),
    ],
)
def test_a_fault_is_one_line_and_fails(others, message, tmp_path, capsys):
    assert main(["check", write(tmp_path, ROWS, **others)]) == 1
    out = capsys.readouterr().out
    assert message in out and out.count("\n") == 1


def test_a_study_without_own_data(tmp_path, capsys):
    (tmp_path / "my.yaml").write_text(yaml.safe_dump({**STUDY, "datasets": ["movie"]}))
    assert main(["check", str(tmp_path / "my.yaml")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'my.yaml'}: conforms, and has no data of your own to preview\n"


def test_too_few_measures_for_a_protocol_are_a_warning(tmp_path, capsys):
    config = {"models": ["average-tanh"], "measures": ["attention", "random"], "protocols": ["agreement"]}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump({**config, "datasets": ["movie"]}))
    assert main(["check", str(tmp_path / "my.yaml")]) == 0
    warning, conforms = capsys.readouterr().out.splitlines()
    assert warning.startswith(
        f"{tmp_path / 'my.yaml'}: warning: `protocols.agreement` adds no score of model 'average-tanh'"
    )
    assert "conforms" in conforms
    assert main(["runs", str(tmp_path / "my.yaml")]) == 0
    assert "\nwarning: `protocols.agreement` adds no score of model 'average-tanh'" in capsys.readouterr().out


def test_a_checkpoint_of_the_hub_is_announced(tmp_path, capsys):
    study = {"datasets": ["movie"], "models": {"mine": {"kind": "pretrained", "checkpoint": "nowhere"}}}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump({**study, "measures": ["gradient-norm"]}))
    assert main(["check", str(tmp_path / "my.yaml")]) == 0
    warning = "model mine: warning: 'nowhere' is not a folder; a run downloads it from the Hugging Face Hub\n"
    assert warning in capsys.readouterr().out
