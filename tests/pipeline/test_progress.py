"""The output of a run on a terminal and in its logs."""

import os
import re
import subprocess
import sys

import pytest

from tests.terminal import Pty

from .conftest import CONFIG, copy_project, run_snakemake, write_config

pytestmark = pytest.mark.pipeline

STUDY = {
    "name": "two trainings",
    "datasets": {"mock-2": {**CONFIG["datasets"]["mock-2"], "train": 4000}},
    "models": {name: {"training": {"epochs": 6}} for name in ("average-tanh", "bag-of-words")},
    "seeds": [0],
    "measures": ["leave-one-out"],
}
ASKED = ["results/tables/performance.parquet", "--cores", "2", "--resources", "gpu=2"]
LIVE = re.compile(
    r"^train mock-2 average-tanh seeds 0: seed 0, epoch \d+/6, batch \d+/125.*  \d+%  [\d,]+ rows/s  \d+:\d\d left$"
)


def test_jobs_are_live_lines_that_leave_no_trace(tmp_path):
    folder = copy_project(tmp_path / "study")
    write_config(folder, STUDY)
    # pytest says how wide its own terminal is.
    others = ("PYTHONPATH", "PLUMBLINE_DATA", "CI", "COLUMNS", "LINES")
    environment = {k: v for k, v in os.environ.items() if k not in others}
    shots: list[list[str]] = []
    with Pty(200, 60) as terminal:
        running = subprocess.Popen(
            [sys.executable, "-m", "snakemake", *ASKED],
            cwd=folder,
            env=environment | {"TERM": "xterm"},
            stdout=terminal.slave,
            stderr=terminal.slave,
        )
        while running.poll() is None:
            shots.append(terminal.read())
        terminal.read()
        lines_shown = terminal.seen.everything()
    assert running.returncode == 0, "\n".join(lines_shown)
    assert any(LIVE.match(line) for shot in shots for line in shot[-2:])
    assert any(all(line.startswith("train mock-2 ") for line in shot[-2:]) for shot in shots), "two jobs, two lines"
    assert not [line for line in lines_shown if re.search(r"rows/s|so far$|starting$|ending$", line)]
    assert "plumbline: 5 jobs done in" in "\n".join(lines_shown)
    assert not (folder / "results/.progress").exists()

    lines = [line for line in lines_shown if line.startswith("[")]
    assert len(lines) == 5 and all("] finished " in line for line in lines), "a line for each job"
    (log,) = (folder / ".snakemake/log").glob("*.log")
    for file in [log, *(folder / "results/logs").rglob("*.log")]:
        assert b"\r" not in file.read_bytes()

    again = run_snakemake(folder, *ASKED, "--forceall", "--dry-run")
    assert again.returncode == 0 and "jobs done" not in again.stdout
    (folder / "results/tables/performance.parquet").unlink()
    piped = run_snakemake(folder, *ASKED)
    assert "plumbline: 1 job done in 0:" in piped.stdout and "5 were up to date" in piped.stdout
    assert "\r" not in piped.stdout and "\x1b" not in piped.stdout and "so far" not in piped.stdout


def test_a_run_says_that_jobs_will_wait_for_a_gpu(tmp_path):
    folder = copy_project(tmp_path / "study")
    write_config(folder, STUDY)
    tool = tmp_path / "bin/nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho GPU-aaa\n")
    tool.chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "CUDA_VISIBLE_DEVICES")}
    environment["PATH"] = f"{tool.parent}:{environment['PATH']}"
    # Where CUDA is real, the jobs do not find this GPU and fail.
    command = [sys.executable, "-m", "snakemake", *ASKED]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    (line,) = [line for line in done.stderr.splitlines() if "slots_per_gpu" in line]
    assert line.startswith("plumbline: 2 jobs that need a GPU may start at a time, but 1 GPU ")
    assert done.stderr.index(line) < done.stderr.index("] started  ")
