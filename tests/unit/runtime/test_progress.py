"""Progress of jobs, and its display on a terminal."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.cells import cell_len

from plumbline.cli import main
from plumbline.conformance import example_instances, example_model
from plumbline.models.evaluator import Evaluator
from plumbline.registry import PACKAGE, Registry
from plumbline.runtime import provenance
from plumbline.runtime.display import cut_to_width, job_lines, speed, state_line, watch
from plumbline.runtime.job import job
from plumbline.runtime.progress import (
    FOLDER,
    Progress,
    State,
    clock,
    job_key,
    job_name,
    remove_states,
    reporting,
    shown,
    stage,
    states,
)  # fmt: skip
from plumbline.runtime.provenance import code_hash, reachable
from tests.terminal import Pty

STATE = State("train sst lstm seeds 0-1", "here", os.getpid(), 100.0, 160.0)
WORK = replace(
    STATE, doing="seed 0, epoch 2/3", done=500, total=1500, unit="row", batch=5, batches=12, rate=50.0, note="loss 0.5"
)


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def ticking(tmp_path):
    """A clock, and a job that reports by it."""
    ticks = Clock()
    with reporting(tmp_path, "train sst lstm", ["a", "b"], ticks):
        yield ticks


def reported(folder: Path) -> State:
    """The state of the only running job."""
    (state,) = states(folder).values()
    return state


def test_rate_and_time_left_are_those_of_the_clock(ticking, tmp_path):
    progress = Progress(1000, "seed 0", "row")
    assert reported(tmp_path).rate is None and reported(tmp_path).seconds_left(ticking.now) is None
    for _ in range(5):
        ticking.now += 2
        progress.update(40)
    state = reported(tmp_path)
    assert (state.done, state.total, state.batch) == (200, 1000, 5)
    assert state.rate == pytest.approx(20)
    assert state.seconds_left(ticking.now) == pytest.approx(40)
    assert state.seconds_left(ticking.now + 15) == pytest.approx(25), "it falls without a report"
    assert state.seconds_left(ticking.now + 100) == 0
    progress.shorten(400)
    ticking.now += 2
    progress.update(40)
    assert reported(tmp_path).seconds_left(ticking.now) == pytest.approx((600 - 240) / 20)


def test_the_rate_is_that_of_the_last_half_minute(ticking, tmp_path):
    progress = Progress(None, "", "row")
    for rate in (1, 100):
        for _ in range(40):
            ticking.now += 1
            progress.update(rate)
    assert reported(tmp_path).rate == pytest.approx(100)
    assert reported(tmp_path).seconds_left(ticking.now) is None


def test_earlier_progress_does_not_count_for_the_rate(ticking, tmp_path):
    progress = Progress(1000, "a.zip", "byte", done=900)
    ticking.now += 10
    progress.update(50)
    assert reported(tmp_path).rate == pytest.approx(5)


def test_a_job_writes_at_most_twice_a_second(ticking, tmp_path, monkeypatch):
    progress = Progress(10**6, "", "row")
    written = []
    monkeypatch.setattr(Path, "write_text", lambda self, text, **_: written.append(text))
    for _ in range(1000):
        ticking.now += 0.01
        progress.update()
    assert 15 <= len(written) <= 20


def test_jobs_on_a_cluster_report_less_often(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    ticks = Clock()
    with reporting(tmp_path, "train", ["a"], ticks):
        progress = Progress(100, "", "row")
        ticks.now += 2
        progress.update(50)
        assert reported(tmp_path).done == 0
        ticks.now += 4
        progress.update(1)
        assert reported(tmp_path).done == 51


def test_nested_progress_and_progress_outside_a_job_are_not_reported(tmp_path):
    with Progress(2, "", "row") as progress:
        progress.update()
    ticks = Clock()
    with reporting(tmp_path, "train", ["a"], ticks):
        for outer in shown(["x", "y"], "outer", "text"):
            with Progress(9, f"inner {outer}", "row") as progress:
                ticks.now += 1
                progress.update(9)
                assert reported(tmp_path).doing == "outer"
        assert reported(tmp_path).doing == ""
        with stage("gradient"):
            ticks.now += 1
            Progress(3, "seed 0", "text").update()
            assert reported(tmp_path).doing == "gradient, seed 0"
    with reporting(tmp_path, "attribute sst gradient", ["a"], ticks), stage("gradient"):
        Progress(3, "seed 0", "text")
        assert reported(tmp_path).doing == "seed 0"


def test_an_error_ends_the_progress(tmp_path):
    ticks = Clock()

    def breaks():
        Progress(5, "first", "row")
        raise MemoryError

    with reporting(tmp_path, "train", ["a"], ticks):
        with pytest.raises(MemoryError):
            breaks()
        ticks.now += 1
        second = Progress(5, "second", "row")
        assert reported(tmp_path).doing == "second"
        second.close()


def test_a_job_leaves_no_file_however_it_ends(tmp_path):
    with reporting(tmp_path, "train", ["a"]):
        assert reported(tmp_path).job == "train"
    assert not (tmp_path / FOLDER).exists()
    with pytest.raises(ValueError), reporting(tmp_path, "train", ["a"]):
        raise ValueError
    assert not (tmp_path / FOLDER).exists()


def test_a_full_disk_fails_no_job(tmp_path):
    (tmp_path / FOLDER).write_text("in the way")
    with reporting(tmp_path, "train", ["a"]), Progress(5, "", "row") as progress:
        progress.update(5)
    assert states(tmp_path) == {}


def test_files_of_killed_jobs_are_not_shown(tmp_path):
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    with reporting(tmp_path, "train", ["a"]):
        (file,) = (tmp_path / FOLDER).iterdir()
        state = json.loads(file.read_text())
    (tmp_path / FOLDER).mkdir()
    for name, change in {"dead": {"pid": int(ended.stdout)}, "elsewhere": {"host": "other", "pid": 1}}.items():
        (tmp_path / FOLDER / name).write_text(json.dumps(state | change))
    (tmp_path / FOLDER / "half").write_text('{"job": "tr')
    (tmp_path / FOLDER / ".fresh.1").write_text("")
    assert list(states(tmp_path)) == ["elsewhere"]
    remove_states(tmp_path)
    assert not (tmp_path / FOLDER).exists()
    remove_states(tmp_path)


def test_scripts_report_by_their_rule_and_keys(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keys = {"dataset": "sst", "variant": "plain", "model": "lstm", "seeds": "0-1", "measure": "lime"}
    snakemake = SimpleNamespace(rule="attribute", wildcards=keys, input=[], output=["x", "y"], log=[])
    with job(snakemake):
        ((key, state),) = states(Path("results")).items()
    assert key == job_key(["x", "y"]) != job_key(["x"])
    assert state.job == job_name("attribute", keys) == "attribute sst lstm seeds 0-1 lime"


def test_the_evaluator_reports_its_batches(tmp_path):
    ticks, seen = Clock(), []
    instances = example_instances()
    model = example_model(Registry().get("model", "average-tanh"))

    def work(index: np.ndarray, batch: object) -> None:
        ticks.now += 1
        seen.append(reported(tmp_path))

    with reporting(tmp_path, "score", ["a"], ticks):
        Evaluator(model, 3, 40).each(instances, work)
    assert seen[-1].doing == "seed 3" and seen[-1].unit == "text" and seen[-1].total == len(instances)
    assert seen[-1].batches == len(seen) > 2 and seen[-1].batch == len(seen) - 1
    assert seen[-1].rate == pytest.approx(seen[-1].done / (len(seen) - 1))


@pytest.mark.parametrize(("file", "same"), [("runtime/progress.py", True), ("training/trainer.py", False)])
def test_no_result_depends_on_progress(monkeypatch, file, same):
    script, edited = PACKAGE.parent / "scripts" / "train.py", PACKAGE / file
    assert edited in reachable(script)
    before, read = code_hash(script), provenance._read
    monkeypatch.setattr(provenance, "_read", lambda path: ("edited", read(path)[1]) if path == edited else read(path))
    assert (code_hash.__wrapped__(script) == before) == same


def test_a_line_shows_work_progress_speed_and_time_left():
    assert state_line(WORK, 160.0, 200) == (
        "train sst lstm seeds 0-1: seed 0, epoch 2/3, batch 5/12, loss 0.5  33%  50 rows/s  0:20 left"
    )
    assert state_line(STATE, 165.0, 200) == "train sst lstm seeds 0-1  1:05 so far"
    assert state_line(replace(WORK, total=None, rate=None, batch=0, note=""), 160.0, 200) == (
        "train sst lstm seeds 0-1: seed 0, epoch 2/3  500 rows  1:00 so far"
    )
    assert state_line(WORK, 160.0 + 3700, 200).endswith("33%  50 rows/s  0:00 left  silent for 1:01:40")


@pytest.mark.parametrize(
    "job", ["train sst lstm", "train 映画レビュー 长短期记忆", "train cafe\u0301 \u200bx", "a\x1b[2Jb\r"]
)
def test_a_line_is_never_wider_than_the_terminal(job):
    for width in range(1, 100):
        cut = state_line(replace(WORK, job=job), 160.0, width)
        assert cell_len(cut) <= width
        assert "\x1b" not in cut and "\r" not in cut
        assert "0:20 left" in cut or width < 30
        assert "epoch 2/3, batch 5/12" in cut or width < 79


def test_wide_characters_take_two_columns():
    assert (
        cut_to_width("映画レビュー", 5) == "映画…"
        and cut_to_width("映画レビュー", 4) == "映 …"
        and cut_to_width("abc", 3) == "abc"
    )


def test_numbers_are_short():
    assert [clock(s) for s in (0, 59.6, 61, 3599, 3600, 90061)] == [
        "0:00",
        "1:00",
        "1:01",
        "59:59",
        "1:00:00",
        "25:01:01",
    ]
    assert speed(12345.6, "row") == "12,346 rows/s" and speed(0.25, "text") == "0.25 texts/s"
    assert speed(2.5e6, "byte") == "2.5 MB/s"


def test_many_jobs_leave_half_of_the_screen_to_others():
    jobs = [replace(WORK, job=f"train {number:03}", started=float(-number)) for number in range(200)]
    lines = job_lines(jobs, ["embed sst  starting"], 160.0, 60, 24)
    assert len(lines) == 12
    assert lines[0].startswith("train 199") and lines[-1] == "… and 190 more jobs"
    assert job_lines(jobs[:2], ["embed sst  starting"], 160.0, 60, 24)[2] == "embed sst  starting"
    assert job_lines([], [], 160.0, 60, 24) == []
    assert len(job_lines(jobs, [], 160.0, 60, 1)) == 1


def test_control_characters_are_left_out():
    assert cut_to_width("a\x1b[2Jb\r", 80) == "a[2Jb"


@pytest.fixture
def terminal():
    with Pty(60, 10) as made:
        yield made


SPEAKER = """
import shlex, subprocess, sys, time
from pathlib import Path
from plumbline.runtime.display import Display
from plumbline.runtime.progress import Progress, job_key, reporting
display = Display(sys.stderr, Path("results"), lambda: {job_key(["a"]): "train a", job_key(["b"]): "train b"})
if display.live:
    display.start()
display.print("from the run " + "x" * 60)
print("from the main process", file=sys.stderr)
child = "import sys; print('bar 10%\\\\rbar 100%', file=sys.stderr); print(sys.stderr.isatty())"
with reporting(Path("results"), "train a", ["a"]):
    progress = Progress(100, "epoch 1/2", "row")
    for _ in range(8):
        time.sleep(0.2)
        progress.update(10)
    shell = display.redirection if display.live else ""
    subprocess.run(["bash", "-c", f"{shell}{shlex.join([sys.executable, '-c', child])}"])
    time.sleep(1.2)
{end}
"""
OUTPUT = ["from the run " + "x" * 47, "x" * 13, "from the main process"]


def start(folder: Path, end: str, out: int, **environment: str) -> subprocess.Popen:
    """A process that shows its jobs, and ends in some way."""
    kept = {key: value for key, value in os.environ.items() if key not in ("CI", "SLURM_JOB_ID", "COLUMNS", "LINES")}
    kept |= {"TERM": "xterm", "PYTHONPATH": str(PACKAGE.parent), **environment}
    command = [sys.executable, "-c", SPEAKER.replace("{end}", end)]
    return subprocess.Popen(command, cwd=folder, env=kept, stdout=out, stderr=subprocess.STDOUT)


@pytest.mark.parametrize(
    ("end", "last_line"),
    [
        ("display.stop(); print('after')", "after"),
        ("import atexit; atexit.register(display.stop); print('half a line', end=''); sys.exit(3)", "half a line"),
    ],
)
def test_output_is_above_the_live_lines_and_these_are_removed(tmp_path, terminal, end, last_line):
    running = start(tmp_path, end, terminal.slave)
    shots = []
    while running.poll() is None:
        shots.append(list(terminal.read()))
    last = terminal.read()
    assert any("rows/s" in line and "left" in line for shot in shots for line in shot)
    assert ["train b  starting"] in [shot[-1:] for shot in shots]
    assert [*OUTPUT, "bar 100%", "False"] == last[:5]
    assert last[-1] == last_line
    assert not any(word in line for line in last for word in ("rows/s", "starting", "ending"))


def test_without_a_terminal_nothing_is_shown(tmp_path):
    output, _ = start(tmp_path, "display.stop()", subprocess.PIPE).communicate()
    assert output == b"from the run " + b"x" * 60 + b"\nfrom the main process\nbar 10%\rbar 100%\nFalse\n"


@pytest.mark.parametrize("quiet", [{"CI": "true"}, {"TERM": "dumb"}])
def test_in_ci_and_on_dumb_terminals_nothing_is_shown(tmp_path, terminal, quiet):
    assert start(tmp_path, "display.stop()", terminal.slave, **quiet).wait() == 0
    written = os.read(terminal.master, 65536)
    assert b"from the run" in written and b"\x1b" not in written and b"rows/s" not in written


def test_another_terminal_shows_the_same(tmp_path, capsys, monkeypatch):
    assert main(["progress", str(tmp_path / "nowhere")]) == 1
    assert "There is no folder" in capsys.readouterr().err
    assert main(["progress", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "No job is running.\n"
    with reporting(tmp_path, "train sst", ["a"]), Progress(10, "epoch 1/2", "row"):
        assert main(["progress", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "train sst: epoch 1/2  0%  0:00 so far\n"


def test_watching_ends_when_it_is_interrupted(tmp_path, terminal, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)
    naps = []

    def sleep(seconds: float) -> None:
        naps.append(terminal.read()[-1])
        if len(naps) == 2:
            raise KeyboardInterrupt

    with reporting(tmp_path, "train sst", ["a"]), open(terminal.slave, "w", closefd=False) as stream:
        watch(tmp_path, stream, sleep)
    assert naps[0].startswith("train sst  0:0")
    assert terminal.read() == []


@pytest.mark.parametrize(
    ("output", "folder"),
    [
        ("results/models/sst/weights", "results"),
        ("explanations/results/models/sst/weights", "explanations/results"),
        ("results/of/mine/results/models/sst/weights", "results/of/mine/results"),
        ("raw/sst.txt", "results"),
    ],
)
def test_progress_is_reported_next_to_the_results_of_a_module(tmp_path, monkeypatch, output, folder):
    monkeypatch.chdir(tmp_path)
    with reporting(Path("results"), "train", [output]):
        assert [path.parent for path in tmp_path.rglob(job_key([output]))] == [tmp_path / folder / FOLDER]
