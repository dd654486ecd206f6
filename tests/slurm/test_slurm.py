"""A whole study through SLURM, with the shipped profile."""

import re
from collections import Counter

import pytest

from ..pipeline.conftest import run_snakemake
from .cluster import NODES
from .studies import Run, new_study, submit, tables

pytestmark = pytest.mark.slurm
GPU_RULES = {"train", "attribute", "score_models"}


@pytest.fixture(scope="module")
def run(cluster, tmp_path_factory) -> Run:
    """The study after a whole run through SLURM."""
    run = submit(new_study(tmp_path_factory.mktemp("submitted") / "study"), "all")
    run.end()
    return run


def test_tables_are_those_of_a_run_without_slurm(run, undisturbed):
    expected = tables(undisturbed)
    assert {"results/tables/agreement.parquet", "results/tables/permutation.parquet"} < set(expected)
    assert tables(run.folder) == expected


def test_every_job_went_through_the_scheduler(run):
    planned = {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", run.output(), re.M)}
    jobs = run.jobs()
    assert Counter(job.rule for job in jobs) == {rule: planned[rule] for rule in planned.keys() - {"all", "total"}}
    assert len(jobs) == planned["total"] - 1
    assert {job.state for job in jobs} == {"COMPLETED"}


def test_jobs_have_the_partition_and_resources_of_their_rules(run):
    jobs = run.jobs()
    assert {job.rule for job in jobs if job.gpus} == GPU_RULES
    for job in jobs:
        wanted = "gpu" if job.rule in GPU_RULES else "cpu"
        assert (job.partition, job.gpus) == (wanted, int(wanted == "gpu")), job
        assert NODES[job.node] == wanted, job
    requested = {job.rule: (job.memory, job.minutes) for job in jobs}
    assert requested["train"] == (4000, 240) and requested["score_models"] == (4000, 120)
    assert requested["prepare"] == (4000, 60) and requested["report"] == (4000, 60)


def test_a_second_run_has_nothing_to_do(run):
    done = run_snakemake(run.folder, "all", "--workflow-profile", "profiles/slurm")
    assert done.returncode == 0 and "Nothing to be done" in done.stdout, done.stdout
