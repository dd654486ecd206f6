"""Jobs that a killed run left behind are found and stopped."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from plumbline.errors import PlumblineError
from plumbline.runtime import orphans as leftovers
from plumbline.runtime.orphans import (
    MAIN,
    identity,
    mark_processes,
    orphaned_processes,
    queued_jobs,
    slurm_comment,
    stop_leftovers,
)

QUEUE = """#!{python}
import sys
from pathlib import Path
here = Path(__file__).parent
if Path(sys.argv[0]).name == "squeue":
    print((here / "queue").read_text(), end="")
elif not (here / "stubborn").exists():
    lines = (here / "queue").read_text().splitlines(keepends=True)
    (here / "queue").write_text("".join(line for line in lines if line.split("|")[0] not in sys.argv[1:]))
"""


@pytest.fixture
def scheduler(tmp_path, monkeypatch):
    """Stand-ins for SLURM's commands that read a file."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("squeue", "scancel"):
        (folder / name).write_text(QUEUE.format(python=sys.executable))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(leftovers, "POLL_SECONDS", 0.05)
    return folder / "queue"


def script(folder: Path) -> Path:
    """The script of a job that does not end."""
    path = folder / ".snakemake/scripts/tmp1.train.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("import time\ntime.sleep(600)\n")
    return path


def test_comments_are_those_of_the_executor():
    assert (
        slurm_comment("train", ["sst", "plain", "roar/relative/x/10"])
        == "rule_train_wildcards_sst_plain_roar_relative_x_10"
    )
    assert slurm_comment("performance", []) == "rule_performance"


def test_jobs_of_this_folder_that_are_to_run_again_are_cancelled_and_no_others(scheduler, tmp_path):
    jobs = [
        ("1", tmp_path, "rule_a"),
        ("2", tmp_path / "other", "rule_a"),
        ("3", tmp_path, "rule_b"),
        ("4", tmp_path, ""),
    ]
    scheduler.write_text("".join(f"{job}|{directory}|{comment}\n" for job, directory, comment in jobs))
    assert queued_jobs(tmp_path, {"rule_a"}) == ["1"]
    message = stop_leftovers(tmp_path, {"rule_a"})
    assert message.startswith("stopped SLURM job 1, left behind by a run that was killed: ")
    assert [line[0] for line in scheduler.read_text().splitlines()] == ["2", "3", "4"]
    assert stop_leftovers(tmp_path, {"rule_a"}) == ""


def test_a_job_that_cannot_be_stopped_is_an_error(scheduler, tmp_path):
    scheduler.write_text("".join(f"{job}|{tmp_path}|rule_a\n" for job in range(6)))
    scheduler.with_name("stubborn").touch()
    with pytest.raises(PlumblineError, match=r"SLURM job 0, .* SLURM job 3 and 2 more of an earlier run would write"):
        stop_leftovers(tmp_path, {"rule_a"}, patience=0.2)


def started(folder: Path, main: str | None) -> subprocess.Popen[bytes]:
    """A job marked with the identity of a main process, if any."""
    environment = {**os.environ, **({MAIN: main} if main else {})}
    return subprocess.Popen([sys.executable, str(script(folder))], env=environment)


def ended() -> str:
    """The identity of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    ended = identity(psutil.Process(process.pid))
    process.kill()
    process.wait()
    return ended


def test_a_process_whose_main_process_has_ended_is_stopped(tmp_path):
    job = started(tmp_path, ended())
    try:
        assert [process.pid for process in orphaned_processes(tmp_path)] == [job.pid]
        assert orphaned_processes(tmp_path / "other") == []
        assert stop_leftovers(tmp_path, set()).startswith(f"stopped process {job.pid}, left behind")
        assert job.wait(10)
    finally:
        job.kill()


LIVE = {
    "whatever the main process is called": lambda: identity(psutil.Process()),
    "of another container": lambda: f"pid:[1] {ended().split(' ', 1)[1]}",
    "without a mark": lambda: None,
}


@pytest.mark.parametrize("main", LIVE)
def test_a_job_of_a_run_that_may_live_is_not_left_over(tmp_path, main):
    job = started(tmp_path, LIVE[main]())
    try:
        assert orphaned_processes(tmp_path) == [] and stop_leftovers(tmp_path, set()) == ""
        assert job.poll() is None
    finally:
        job.kill()


def test_a_reused_pid_is_no_main_process(tmp_path):
    namespace, pid, began = identity(psutil.Process()).rsplit(" ", 2)
    job = started(tmp_path, f"{namespace} {pid} {float(began) - 60:.2f}")
    try:
        assert [process.pid for process in orphaned_processes(tmp_path)] == [job.pid]
    finally:
        job.kill()


def test_started_processes_are_marked(monkeypatch):
    monkeypatch.setenv(MAIN, "none")
    mark_processes()
    mark = subprocess.run(["printenv", MAIN], capture_output=True, text=True, check=True).stdout.strip()
    assert mark == identity(psutil.Process())
