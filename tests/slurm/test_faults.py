"""Faults of a cluster during a study, whose importances and tables must equal those of an undisturbed run."""

import subprocess
import time

import pytest

from .cluster import NODES, job_processes, start_daemon, stop_daemon
from .studies import half_done, set_resources, submit, tables, wait_for

pytestmark = pytest.mark.slurm
TARGET = "results/tables/agreement.parquet"


def scontrol(*words: str) -> None:
    subprocess.run(["scontrol", *words], check=True)


def test_killed_and_cancelled_jobs(cluster, undisturbed, tmp_path):
    run = submit(half_done(undisturbed, tmp_path / "study", "held", "held-too"), TARGET)
    killed, cancelled = run.running("attribute", "_held"), run.running("attribute", "_held-too")
    wait_for("both measures", lambda: all((run.folder / mark).exists() for mark in ("held", "held-too")))
    found = job_processes(killed)
    assert found
    for process in found:
        process.kill()
    subprocess.run(["scancel", cancelled], check=True)
    output = run.end()
    assert "SLURM status is: 'FAILED'" in output and "SLURM status is: 'CANCELLED'" in output
    jobs = run.jobs()
    assert [job.state for job in jobs if job.id == killed] == ["FAILED"]
    assert [job.state for job in jobs if job.id == cancelled] == ["CANCELLED"]
    assert sorted(job.keys.rpartition("_")[2] for job in jobs if job.memory == 8000) == ["held", "held-too"]
    assert tables(run.folder) == tables(undisturbed)


def test_jobs_over_their_time_and_memory_get_more(cluster, undisturbed, tmp_path):
    folder = half_done(undisturbed, tmp_path / "study", "held")
    set_resources(folder, "attribute", runtime="attempt", mem_mb="1000 * attempt")
    run = submit(folder, TARGET)
    run.end()
    attempts = {
        measure: [job for job in run.jobs() if job.keys.endswith(f"_{measure}")]
        for measure in ("held", "held-too", "hungry")
    }
    attempted = {name: [(job.state, job.minutes, job.memory) for job in jobs] for name, jobs in attempts.items()}
    assert attempted["held"] == [("TIMEOUT", 1, 1000), ("COMPLETED", 2, 2000)]
    assert attempted["hungry"] == [("FAILED", 1, 1000), ("COMPLETED", 2, 2000)]
    assert attempted["held-too"] == [("COMPLETED", 1, 1000)]
    log = run.log(attempts["hungry"][0].id)
    assert "exceeded memory limit" in log
    # Another attempt is another job of SLURM's, which has more; in the same one it would fail again.
    assert "Trying to restart job" not in log
    assert tables(folder) == tables(undisturbed)


def test_a_node_set_down(cluster, undisturbed, tmp_path):
    run = submit(half_done(undisturbed, tmp_path / "study", "held"), TARGET)
    lost = run.running("attribute", "_held")
    wait_for("the measure", (run.folder / "held").exists)
    node = run.queue()[lost].node
    assert NODES[node] == "gpu"
    scontrol("update", f"NodeName={node}", "State=DOWN", "Reason=test")
    try:
        # SLURM lets the node's jobs wait for two minutes, which a test need not.
        wait_for("the job in the queue again", lambda: run.queue()[lost].state == "PENDING")
        for job in [job for job, entry in run.queue().items() if entry.state == "PENDING"]:
            scontrol("update", f"JobId={job}", "StartTime=now")
        output = run.end()
    finally:
        scontrol("update", f"NodeName={node}", "State=RESUME")
    # SLURM itself starts the job again, with the same id: no attempt is lost.
    attempts = [job for job in run.jobs() if job.id == lost]
    assert [job.state for job in attempts] == ["NODE_FAIL", "COMPLETED"] and attempts[1].node != node
    assert "] failed" not in output
    assert tables(run.folder) == tables(undisturbed)


def test_accounting_down_for_a_minute(cluster, undisturbed, tmp_path):
    run = submit(half_done(undisturbed, tmp_path / "study"), TARGET)
    run.running("attribute", "_cheap")
    stop_daemon(cluster, "slurmdbd")
    try:
        time.sleep(60)
    finally:
        start_daemon(cluster, "slurmdbd")
    output = run.end()
    assert "] failed" not in output
    assert len(run.jobs()) == 6 and {job.state for job in run.jobs()} == {"COMPLETED"}
    assert tables(run.folder) == tables(undisturbed)
