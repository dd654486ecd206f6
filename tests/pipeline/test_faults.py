"""Faults of a machine during a study, whose tables must equal those of an undisturbed run."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from plumbline.cli import main
from plumbline.store import read_stamped

from .conftest import CONFIG, copy_project, measures_in, run_snakemake, run_study, write_config

pytestmark = pytest.mark.studies

# The tables are what is compared in the end.
ALL = ("tables", "--cores", "2")
BROKEN = '''

@measure("broken", equation="1")
def broken(evaluator, instances):
    """Never works."""
    raise ValueError("it does not work")
'''
SMALL = {
    **CONFIG,
    "datasets": {"mock-2": CONFIG["datasets"]["mock-2"]},
    "models": {"average-tanh": CONFIG["models"]["average-tanh"]},
    "adversaries": {},
    "measures": ["attention", "gradient", "position"],
    "protocols": {"agreement": {"statistics": ["kendall"]}},
}


def small_study(folder: Path) -> Path:
    copy_project(folder)
    write_config(folder, SMALL)
    return folder


@pytest.fixture(scope="session")
def undisturbed(once) -> Path:
    return once("undisturbed", lambda folder: run_study(folder, SMALL, *ALL))


@pytest.fixture
def study(tmp_path) -> Path:
    return small_study(tmp_path / "study")


@pytest.fixture
def done(undisturbed, tmp_path) -> Path:
    """A finished study to damage."""
    return Path(shutil.copytree(undisturbed, tmp_path / "study", symlinks=True))


def assert_same_tables(one: Path, other: Path) -> None:
    """All tables except the timings are the same."""
    tables = sorted(path.name for path in (one / "results/tables").glob("*.parquet") if path.stem != "timings")
    assert len(tables) > 2
    for name in tables:
        (kind, first), (other_kind, second) = (
            read_stamped(folder / "results/tables" / name) for folder in (one, other)
        )
        assert kind == other_kind and first.equals(second), name


def start(folder: Path) -> subprocess.Popen:
    """Start a study in the background."""
    with (folder / "started.txt").open("w") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", *ALL], cwd=folder, stdout=out, stderr=subprocess.STDOUT
        )


def script_of(folder: Path, rule: str) -> psutil.Process:
    """The process of a rule's script, once it runs."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if any(word.startswith(f"{folder}/.snakemake/scripts/") and word.endswith(f".{rule}.py") for word in words):
                return process
        time.sleep(0.05)
    pytest.fail(f"no job of {rule} began")


def forks_of(client: psutil.Process) -> list[psutil.Process]:
    """The process that jobs are forked from, with its forks: their command names the client's socket."""
    socket = client.cmdline()[-2]
    return [process for process in psutil.process_iter(["cmdline"]) if socket in (process.info["cmdline"] or [])[2:5]]


def test_the_main_process_is_killed_and_its_jobs_end(study, undisturbed):
    main_process = start(study)
    job = script_of(study, "train")
    forks = [process for process in forks_of(job) if process != job]
    assert forks
    job.suspend()  # It would end too, before the next run looks for it.
    main_process.kill()
    main_process.wait()
    assert job.is_running()
    _, left = psutil.wait_procs(forks, timeout=30)
    assert all(process.status() == psutil.STATUS_ZOMBIE for process in left)
    refused = run_snakemake(study, *ALL)
    assert refused.returncode and "--unlock" in refused.stdout
    assert run_snakemake(study, "--unlock").returncode == 0
    again = run_snakemake(study, *ALL)
    assert again.returncode == 0, again.stdout
    assert f"plumbline: stopped process {job.pid}, left behind by a run that was killed" in again.stdout
    assert not job.is_running()
    assert_same_tables(study, undisturbed)


def test_a_killed_job_is_retried(study, undisturbed):
    run = start(study)
    os.kill(script_of(study, "train").pid, signal.SIGKILL)
    assert run.wait() == 0
    log = (study / "started.txt").read_text()
    assert log.count("] failed   train mock-2 average-tanh seeds 0-1: killed by signal 9") == 1
    assert log.count("] started  train mock-2 average-tanh seeds 0-1") == 2
    assert_same_tables(study, undisturbed)


def test_a_second_main_process_is_refused(study, undisturbed):
    first = start(study)
    job = script_of(study, "train")
    job.suspend()  # The first would be done before the second looks.
    second = run_snakemake(study, *ALL)
    job.resume()
    assert second.returncode and "Directory cannot be locked" in second.stdout
    assert first.wait() == 0
    assert_same_tables(study, undisturbed)


def test_a_truncated_artefact_is_named_and_regenerated(done, undisturbed):
    cut = done / "results/attributions/mock-2/plain/average-tanh/0-1/cheap.parquet"
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    table = done / "results/scores/agreement/mock-2/plain/average-tanh/0-1.parquet"
    table.unlink()
    failed = run_snakemake(done, *ALL)
    name = cut.relative_to(done)
    assert failed.returncode
    message = (
        f"  score agreement mock-2 average-tanh seeds 0-1: '{name}' is damaged and cannot be read as Parquet. Run again"
    )
    assert message in failed.stdout, failed.stdout
    assert f"'{name}' is damaged and set aside as '{name}.damaged'." in failed.stdout
    # Its fault does not go away by trying again.
    assert failed.stdout.count("] started  score agreement") == 1, failed.stdout
    again = run_snakemake(done, *ALL)
    assert again.returncode == 0, again.stdout
    assert_same_tables(done, undisturbed)


def test_a_table_that_nothing_reads_is_found_too(done, undisturbed, capsys):
    cut = done / "results/tables/agreement.parquet"
    cut.write_bytes(cut.read_bytes()[:100])
    assert main(["verify", str(done / "results")]) == 1
    assert "agreement.parquet' is damaged: set aside" in capsys.readouterr().out
    assert run_snakemake(done, *ALL).returncode == 0
    assert_same_tables(done, undisturbed)


def test_a_full_disk_leaves_nothing_half_written(study, undisturbed):
    models = study / "results/models"
    models.mkdir(parents=True)
    if (
        not shutil.which("mount")
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(models)], capture_output=True
        ).returncode
    ):
        pytest.skip("a small file system cannot be mounted here")
    try:
        failed = run_snakemake(study, *ALL)
        left = [path for path in models.rglob("*") if path.is_file()]
    finally:
        subprocess.run(["umount", str(models)], check=True)
    assert failed.returncode
    assert "  train mock-2 average-tanh seeds 0-1: The disk is full" in failed.stdout, failed.stdout
    assert not left
    assert run_snakemake(study, *ALL).returncode == 0
    assert_same_tables(study, undisturbed)


def test_a_job_that_always_fails_leaves_the_others_finished_and_is_in_the_summary(study, undisturbed):
    plugin = study / "plugin.py"
    working = plugin.read_text()
    plugin.write_text(working + BROKEN)
    write_config(study, {**SMALL, "measures": [*SMALL["measures"], "broken"]})
    failed = run_snakemake(study, *ALL)
    assert failed.returncode
    end = failed.stdout[failed.stdout.index("plumbline: 1 job failed; all jobs that do not need it are done.") :]
    message = "attribute mock-2 average-tanh seeds 0-1 broken: ValueError: it does not work"
    assert message in end and "results/logs/attribute/mock-2/plain/average-tanh/0-1/broken.log" in end
    folder = study / "results/attributions/mock-2/plain/average-tanh/0-1"
    assert set.union(*map(measures_in, folder.glob("*.parquet"))) == set(SMALL["measures"])
    assert (study / "results/tables/performance.parquet").exists()
    plugin.write_text(working)
    write_config(study, SMALL)
    assert run_snakemake(study, *ALL).returncode == 0
    assert_same_tables(study, undisturbed)
