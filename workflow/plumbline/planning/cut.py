"""Jobs that fit into the time that they request from a cluster: with fewer seeds or instances, or with more time."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil

from plumbline.config.schema import JobSize
from plumbline.config.seeds import cut_block, parse_seeds
from plumbline.planning.jobs import PlannedJob
from plumbline.planning.work import Works

# Jobs with a smaller part of the instances would be mostly start-up.
MOST_PARTS = 1000
# The factor on the time is rounded up to a multiple of this.
FACTOR_STEP = 0.5


def job_sizes(jobs: Sequence[PlannedJob], works: Works, seconds: Callable[[PlannedJob], float]) -> dict[str, JobSize]:
    """The size of the jobs of each dataset with which none exceeds its time. `jobs` are those of the uncut study, and
    `seconds` returns the expected time of one."""
    of: dict[str, list[PlannedJob]] = defaultdict(list)
    for job in jobs:
        of[job.wildcards.get("dataset", "")].append(job)
    return {
        dataset: _largest(of[dataset], works, seconds, not works.compares_seeds(dataset))
        for dataset in works.resolved.study.datasets
    }


def _largest(
    jobs: Sequence[PlannedJob], works: Works, seconds: Callable[[PlannedJob], float], may_cut_seeds: bool
) -> JobSize:
    """The largest jobs of one dataset. They get more time only if the smallest ones do not fit; seeds are divided only
    for the jobs whose instances cannot be."""
    split = [job for job in jobs if works.is_splittable(job)]
    whole = [job for job in jobs if not works.is_splittable(job)]

    def excess(some: Sequence[PlannedJob], seeds: int | None, parts: int) -> float:
        """The largest ratio of the expected to the requested time."""
        smaller = [replace(job, wildcards=_cut(job.wildcards, seeds, parts)) for job in some]
        return max((seconds(job) / (60 * job.minutes) for job in smaller if job.minutes), default=0.0)

    blocks = {job.wildcards["seeds"] for job in jobs if "seeds" in job.wildcards and may_cut_seeds}
    longest = max(map(_count, blocks), default=1)
    # Equal blocks may be smaller than they could be.
    counts = {max(_count(cut_block(block, most)[0]) for block in blocks) for most in range(1, longest)}
    sizes = sorted(counts, reverse=True)
    least = min(sizes, default=None)
    shortest = max(excess(whole, least, 1), excess(split, least, MOST_PARTS), 1.0)
    factor = FACTOR_STEP * ceil(shortest / FACTOR_STEP)
    seeds = next((size for size in (None, *sizes) if excess(whole, size, 1) <= factor), least)
    parts = next((parts for parts in range(1, MOST_PARTS) if excess(split, seeds, parts) <= factor), MOST_PARTS)
    return JobSize(seeds=seeds, attribution_parts=parts, time_factor=factor)


def _count(block: str) -> int:
    return len(parse_seeds(block))


def _cut(wildcards: Mapping[str, str], seeds: int | None, parts: int) -> dict[str, str]:
    """The wildcards of the largest job after cutting."""
    cut = {"seeds": cut_block(wildcards["seeds"], seeds)[0]} if "seeds" in wildcards else {}
    return {**wildcards, **cut, "part": f"1-of-{parts}"}
