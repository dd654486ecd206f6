"""`plumbline merge`: what is refused before any file is read or written."""

import json
import shutil

import pytest

from plumbline.cli import main
from plumbline.errors import PlumblineError
from plumbline.merge import merge as merging
from plumbline.merge.artefacts import Artefact
from plumbline.merge.jobs import StudyJob


def refused(capsys, *arguments) -> str:
    assert main(["merge", *map(str, arguments)]) == 1
    return capsys.readouterr().err.removeprefix("plumbline: ").strip()


def test_what_is_no_finished_run_gets_one_sentence(make, tmp_path, capsys):
    run, into = make("a"), tmp_path / "into"
    for name in ("empty", "begun/results/models", "odd/results"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "odd/results/manifest.json").write_text(json.dumps({"host": "vm"}))
    expected = {
        "absent": f"There is no folder '{tmp_path}/absent'; give the folder in which a study ran.",
        "empty": f"'{tmp_path}/empty' has no results of a study: there is no '{tmp_path}/empty/results/manifest.json'.",
        "begun": f"The run in '{tmp_path}/begun' is not finished: its results have no manifest.json, which the last "
        "job writes. Run the study to the end (target `all`).",
        "odd": f"'{tmp_path}/odd/results/manifest.json' is not the manifest of a study: it has no key `study`.",
    }
    for name, message in expected.items():
        assert refused(capsys, run, tmp_path / name, "--into", into) == message
    assert not into.exists()


def test_a_run_is_named_once_and_not_alone(make, tmp_path, capsys):
    run, into = make("a"), tmp_path / "into"
    message = f"'{run}' and '{run}/results' are the same run; give each run once."
    assert refused(capsys, run, run / "results", "--into", into) == message
    assert refused(capsys, run, "--into", into) == "A merge needs two or more runs; give their folders."


def test_the_merged_folder_is_a_new_one(make, tmp_path, capsys):
    runs = make("a"), make("b")
    (tmp_path / "file").write_text("")
    for into in (runs[0], tmp_path / "file"):
        message = f"'{into}' exists and is not an empty folder; give a new folder for the merged study."
        assert refused(capsys, *runs, "--into", into) == message
    assert refused(capsys, *runs).endswith("add `--into DIR`.")
    assert refused(capsys, "--list", *runs) == (
        "`merge --list` lists the files of one run; give one folder, without `--into`."
    )


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


@pytest.mark.parametrize("existed", [False, True])
def test_a_full_disk_leaves_nothing_behind(existed, run, tmp_path, monkeypatch):
    part, into = run("a"), tmp_path / "into"
    if existed:
        into.mkdir()
    job, copied = StudyJob("report", {}, [], ["results/manifest.json"], "", {}), []

    def copy(source, target):
        copied.append(target)
        target.write_text("half")
        if len(copied) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", copy)
    artefacts = [Artefact("results/manifest.json", job, [part])] * 2
    with pytest.raises(PlumblineError, match=r"cannot be written into '.*into': No space left on device"):
        merging._write(artefacts, tmp_path / "records", into)
    assert len(copied) == 2 and ([*into.iterdir()] == [] if existed else not into.exists())


def test_files_are_copied_with_one_date_and_the_run_keeps_its_own(run, tmp_path):
    part, into, records = run("a"), tmp_path / "new" / "into", tmp_path / "records"
    (records / ".snakemake" / "metadata").mkdir(parents=True)
    (records / "study.yaml").write_text("name: whole")
    (part.results / "other.json").write_text("{}")
    before = [path.stat().st_mtime_ns for path in part.results.iterdir()]
    job = StudyJob("prepare", {}, [], [], "", {})
    paths = ["results/manifest.json", "results/other.json"]
    merging._write([Artefact(path, job, [part]) for path in paths], records, into)
    assert {path.name for path in into.iterdir()} == {".snakemake", "study.yaml", "results"}
    assert (into / paths[0]).read_bytes() == part.place(paths[0]).read_bytes()
    assert len({(into / path).stat().st_mtime_ns for path in paths}) == 1
    assert [path.stat().st_mtime_ns for path in part.results.iterdir()] == before
