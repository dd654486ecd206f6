"""Messages of failed jobs, damaged files, and which files of a study are whole."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import plumbline
from plumbline.cli import main
from plumbline.runtime.corruption import note, set_aside_noted
from plumbline.runtime.job import job
from plumbline.runtime.verify import damaged_files
from plumbline.store import read_json, read_table, read_tensors, write_json, write_table, write_tensors
from plumbline.training.schemas import HISTORY

EPOCH = {"seed": [0], "epoch": [1], "split": ["dev"], "metric": ["f1"], "value": [0.5], "seconds": [1.0]}


@pytest.fixture
def files(tmp_path):
    """A file of each kind, all whole."""
    write_table(tmp_path / "a.parquet", HISTORY, EPOCH)
    write_tensors(tmp_path / "b.safetensors", {"x": torch.arange(10), "y": torch.ones(3)})
    write_json(tmp_path / "c.json", {"k": [1, 2]})
    return {path.name: path for path in tmp_path.iterdir()}


READERS = {
    "a.parquet": lambda path: read_table(path, HISTORY),
    "b.safetensors": read_tensors,
    "c.json": read_json,
}


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.fixture(autouse=True)
def in_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def snakemake_object(log, inputs=()):
    """The object that Snakemake passes to a script."""
    return SimpleNamespace(rule="train", wildcards={"dataset": "sst"}, input=inputs, output=["out"], log=[str(log)])


def run(tmp_path, inputs, body):
    """Run a job's body; its exit code and its log."""
    log = tmp_path / "job.log"
    with pytest.raises(SystemExit) as ended, job(snakemake_object(log, inputs)):
        body()
    return ended.value.code, log.read_text()


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_input_is_named_and_set_aside_by_the_next_run(files, tmp_path, capsys, name):
    cut(files[name])
    for _ in range(2):
        code, log = run(tmp_path, ["other", name], lambda: READERS[name](name))
        assert code == 1
        assert log.startswith(f"plumbline: '{name}' is damaged and cannot be read as ")
        assert log.endswith(". Run again, and it is set aside and regenerated.\n")
        assert log in capsys.readouterr().err
    assert files[name].exists(), "another attempt must find it"
    assert set_aside_noted() == [Path(name)]
    assert not files[name].exists() and (tmp_path / f"{name}.damaged").exists()
    assert set_aside_noted() == []


def test_a_noted_file_that_no_longer_exists_is_ignored(tmp_path):
    note(Path("gone.json"))
    assert set_aside_noted() == []
    assert not (tmp_path / "results/.damaged").exists()


def test_a_damaged_file_that_is_no_input_of_the_job_stays(files, tmp_path):
    cut(files["a.parquet"])
    _, log = run(tmp_path, [], lambda: read_table(files["a.parquet"], HISTORY))
    assert log.endswith("cannot be read as Parquet. Delete it and run again; Snakemake regenerates it.\n")
    assert files["a.parquet"].exists()


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        RuntimeError("I/O error: No space left on device (os error 28)"),
        OSError(122, "Disk quota exceeded"),
    ],
)
def test_a_full_disk_has_its_message(tmp_path, error):
    def body():
        raise error

    assert run(tmp_path, [], body)[1].startswith("plumbline: The disk is full")


def test_other_errors_keep_their_traceback_and_old_logs_are_removed(tmp_path):
    log = tmp_path / "job.log"
    log.write_text("plumbline: what was wrong before\n")
    with job(snakemake_object(log)):
        assert not log.exists()
    with pytest.raises(ZeroDivisionError), job(snakemake_object(log)):
        1 / 0  # noqa: B018
    assert "Traceback" in log.read_text()


def test_truncated_files_are_found_and_set_aside(files, tmp_path, capsys):
    assert main(["verify", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith("are intact.\n")
    assert main(["verify", str(tmp_path / "nowhere")]) == 1
    assert not list(damaged_files(tmp_path))
    for path in files.values():
        cut(path)
    assert main(["verify", str(tmp_path), "--list"]) == 1
    assert len(list(damaged_files(tmp_path))) == 3, "only named"
    assert main(["verify", str(tmp_path)]) == 1
    assert not list(damaged_files(tmp_path))
    output = capsys.readouterr().out
    assert all(output.count(f"{name}' is damaged") == 2 for name in files)


def test_tensors_that_lack_a_byte_are_damaged(files, tmp_path):
    path = files["b.safetensors"]
    path.write_bytes(path.read_bytes()[:-1])
    assert list(damaged_files(tmp_path)) == [path]
    path.write_bytes(b"\x00\x01")
    assert list(damaged_files(tmp_path)) == [path]


def test_the_start_up_is_exact_to_a_tenth_of_a_second():
    before = time.time()
    text = "import time; from plumbline.runtime.job import _age; print(_age(), time.time())"
    environment = os.environ | {"PYTHONPATH": str(Path(plumbline.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    age, then = map(float, done.stdout.split())
    assert 0 < age < then - before + 0.1
    # The process starts right after the clock is read.
    assert age > then - before - 0.4
