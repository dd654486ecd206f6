"""Sizes with which no job exceeds its time, by hand: start-up and every seed take a minute each."""

from pathlib import Path

import pytest

from plumbline.config.resolve import resolve
from plumbline.config.schema import JobSize
from plumbline.config.seeds import parse_seeds
from plumbline.planning.cost import Costs
from plumbline.planning.cut import job_sizes
from plumbline.planning.jobs import PlannedJob
from plumbline.planning.plan import Machine, Plan, plan_jobs
from plumbline.planning.show import as_json, as_text
from plumbline.planning.work import Works

STUDY = {
    "datasets": ["sst", "mock-2"],
    "models": ["bilstm-tanh"],
    "seeds": ["0-4"],
    "measures": ["attention", "leave-one-out"],
    "protocols": {"agreement": {}},
}


def job(rule: str, minutes: int | None, **wildcards: str) -> PlannedJob:
    cell = {"dataset": "sst", "variant": "plain", "model": "bilstm-tanh", "seeds": "0-4"}
    return PlannedJob(rule, {**cell, **wildcards}, 1, 1, minutes, 1, [rule], [])


def costly(minutes: int) -> PlannedJob:
    return job("attribute", minutes, measures="leave-one-out")


def seconds(job: PlannedJob) -> float:
    parts = int(job.wildcards["part"].removeprefix("1-of-"))
    return 60 * (1 + len(parse_seeds(job.wildcards["seeds"])) / parts)


def size(*jobs: PlannedJob, **changes: object) -> JobSize:
    """The size of the jobs of SST; the other dataset has none."""
    found = job_sizes(jobs, Works(resolve(STUDY | changes), Path()), seconds)
    assert found["mock-2"] == JobSize()
    return found["sst"]


@pytest.mark.parametrize(
    ("minutes", "seeds", "factor"),
    # Four and three seeds are both cut into blocks of three and two.
    [(6, None, 1.0), (5, 3, 1.0), (4, 3, 1.0), (3, 2, 1.0), (2, 1, 1.0), (1, 1, 2.0)],
)
def test_blocks_of_seeds_are_cut_and_a_seed_that_takes_longer_gets_more_time(minutes, seeds, factor):
    assert size(job("train", minutes)) == JobSize(seeds=seeds, time_factor=factor)
    assert size(job("attribute", minutes, measures="cheap")) == JobSize(seeds=seeds, time_factor=factor)


def test_instances_are_split_before_seeds():
    assert size(costly(6)) == JobSize()
    assert size(costly(2)) == JobSize(attribution_parts=5)
    assert size(job("train", 4), costly(2)) == JobSize(seeds=3, attribution_parts=3)
    # One seed trains in two minutes, and ten parts of five seeds are explained in one and a half.
    assert size(job("train", 1), costly(1)) == JobSize(seeds=1, time_factor=2.0)
    assert size(costly(1)) == JobSize(attribution_parts=10, time_factor=1.5)


def test_seeds_that_a_protocol_compares_stay_together():
    compared = {"protocols": {"seed_variance": {"datasets": ["sst"]}}}
    assert size(job("train", 3), costly(3), **compared) == JobSize(time_factor=2.0)
    assert size(job("train", 3), protocols={"seed_variance": {"datasets": ["mock-2"]}}) == JobSize(seeds=2)


def test_only_jobs_of_a_dataset_with_a_time_limit_count():
    report = PlannedJob("report", {}, 1, 0, 1, 1, ["index.html"], [])
    assert size(job("train", None), report) == JobSize()


def resized(sizes: dict[str, JobSize] | None, tmp_path: Path) -> Plan:
    jobs = [job("train", 240)]
    plan = plan_jobs("study", jobs, Works(resolve(STUDY), tmp_path), Costs([], []), Machine(1, 1), 1.0)
    return Plan(**{**vars(plan), "sizes": sizes})


def test_a_plan_shows_the_lines_for_the_study(tmp_path):
    sizes = {"sst": JobSize(seeds=2, attribution_parts=3), "mock-2": JobSize(), "imdb": JobSize(time_factor=1.5)}
    lines = as_text(resized(sizes, tmp_path)).splitlines()
    shown = ["compute:", "  jobs:", "    sst: {seeds: 2, attribution_parts: 3}", "    imdb: {time_factor: 1.5}"]
    assert lines[-4:] == shown
    assert as_json(resized(sizes, tmp_path))["sizes"]["mock-2"] == JobSize().model_dump()
    assert "need not be set" in as_text(resized({"sst": JobSize()}, tmp_path))
    assert "compute" not in as_text(resized(None, tmp_path)) and "sizes" not in as_json(resized(None, tmp_path))
