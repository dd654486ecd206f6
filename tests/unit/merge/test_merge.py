"""`plumbline merge`: what is refused before any file is read or written."""

import json

import pytest

from plumbline.cli import main


def refused(capsys, *arguments) -> str:
    assert main(["merge", *map(str, arguments)]) == 1
    return capsys.readouterr().err.removeprefix("plumbline: ").strip()


def test_what_is_no_finished_run_gets_one_sentence(make, tmp_path, capsys):
    run, into = make("a"), tmp_path / "into"
    for name in ("empty", "begun/results/models", "odd/results"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "odd/results/manifest.json").write_text(json.dumps({"host": "vm"}))
    expected = {
        "absent": f"There is no folder '{tmp_path}/absent'; name the folder in which a study ran.",
        "empty": f"'{tmp_path}/empty' has no results of a study: there is no '{tmp_path}/empty/results/manifest.json'.",
        "begun": f"The run in '{tmp_path}/begun' is not finished: its results have no manifest.json, which the last "
        "job writes. Finish it, then merge.",
        "odd": f"'{tmp_path}/odd/results/manifest.json' is not the manifest of a study: it has no key `study`.",
    }
    for name, message in expected.items():
        assert refused(capsys, run, tmp_path / name, "--into", into) == message
    assert not into.exists()


def test_a_run_is_named_once_and_not_alone(make, tmp_path, capsys):
    run, into = make("a"), tmp_path / "into"
    message = f"'{run}' and '{run}/results' are the same run; name each once."
    assert refused(capsys, run, run / "results", "--into", into) == message
    assert refused(capsys, run, "--into", into) == "A merge needs two runs or more; name their folders."


def test_the_merged_folder_is_a_new_one(make, tmp_path, capsys):
    runs = make("a"), make("b")
    (tmp_path / "file").write_text("")
    for into in (runs[0], tmp_path / "file"):
        message = f"'{into}' exists and is not an empty folder; name a new folder for the merged study."
        assert refused(capsys, *runs, "--into", into) == message
    assert refused(capsys, *runs).endswith("add `--into DIR`.")
    assert refused(capsys, "--list", *runs) == "`merge --list` lists the files of one run; name it alone."


def test_a_study_that_is_no_longer_valid_names_its_run(make, tmp_path, capsys):
    run, old = make("a"), make("b")
    manifest = json.loads((old / "results/manifest.json").read_text())
    manifest["study"]["protocols"]["gone"] = {}
    (old / "results/manifest.json").write_text(json.dumps(manifest))
    message = refused(capsys, run, old, "--into", tmp_path / "into")
    assert message.startswith(f"The study of '{old}' cannot be used: `protocols.gone`")


@pytest.mark.parametrize("option", ["--partial", "--dry-run", "--no-explorer"])
def test_refused_options_write_nothing(option, make, tmp_path, capsys):
    runs, into = (make("a"), make("b", sample=5)), tmp_path / "into"
    assert "`sample` is not set" in refused(capsys, *runs, "--into", into, option)
    assert not into.exists()
