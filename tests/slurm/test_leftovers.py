"""The main process is killed while its jobs run, and the study is restarted at once."""

import subprocess

import pytest

from ..pipeline.conftest import run_snakemake
from .studies import half_done, submit, tables, wait_for

pytestmark = pytest.mark.slurm
TARGET = "results/tables/agreement.parquet"


def test_the_jobs_of_a_killed_main_process_are_stopped_before_they_are_submitted_again(cluster, undisturbed, tmp_path):
    folder = half_done(undisturbed, tmp_path / "study", "held")
    killed = submit(folder, TARGET)
    left, name = killed.running("attribute", "_held"), killed.name
    wait_for("the measure", (folder / "held").exists)
    killed.process.kill()
    killed.process.wait()
    command = ["squeue", "--noheader", "--name", name, "--format=%i"]
    assert left in subprocess.run(command, text=True, capture_output=True, check=True).stdout.split()
    assert run_snakemake(folder, "--unlock").returncode == 0
    again = submit(folder, TARGET)
    output = again.end()
    stopped = next(line for line in output.splitlines() if line.startswith("plumbline: stopped SLURM job "))
    assert f"SLURM job {left}" in stopped and "left behind by a run that was killed" in stopped
    command = ["sacct", "--jobs", left, "--allocations", "--noheader", "--format=State%20"]
    state = wait_for(
        "the accounting", lambda: subprocess.run(command, text=True, capture_output=True, check=True).stdout.strip()
    )
    assert state.startswith("CANCELLED")
    assert [job.state for job in again.jobs() if job.keys.endswith("_held")] == ["COMPLETED"]
    assert tables(folder) == tables(undisturbed)
