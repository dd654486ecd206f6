"""The plan of a study: jobs per rule, their expected seconds, and the wall-clock time on a machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from plumbline.config.external import locate_files
from plumbline.config.resolve import read_config, resolve
from plumbline.config.schema import JobSize
from plumbline.errors import PlumblineError
from plumbline.planning.cost import BASES, Basis, Cost, Costs
from plumbline.planning.cut import job_sizes
from plumbline.planning.jobs import PlannedJob, dry_run
from plumbline.planning.measured import NAME_TIMINGS, from_results, rates, read_timings
from plumbline.planning.schedule import Task, finish_times, longest_chain
from plumbline.planning.work import Works

# The seconds of downloads, and of files that the user supplies, cannot be estimated.
UNTIMED = ("download", "bring", "fetch")


@dataclass(frozen=True)
class Machine:
    """The GPUs and cores for jobs. Without a GPU all jobs run on cores."""

    gpus: int
    cores: int

    def __str__(self) -> str:
        cores = f"{self.cores} core{'s' * (self.cores != 1)}"
        return f"{self.gpus} GPU{'s' * (self.gpus != 1)} and {cores}" if self.gpus else cores

    def device(self, job: PlannedJob) -> str:
        """The kind of device that a job uses."""
        return "cuda" if self.gpus and job.gpus else "cpu"


@dataclass
class RuleCost:
    """The jobs of one rule, with their total seconds by basis."""

    rule: str
    jobs: int = 0
    startup: float = 0.0
    seconds: float = 0.0
    by_basis: dict[Basis, float] = field(default_factory=lambda: dict.fromkeys(BASES, 0.0))
    # Jobs that are expected to exceed the minutes that they request, and the longest job.
    over: int = 0
    longest: float = 0.0
    # Whether the jobs run blocks of seeds, which can be made smaller.
    of_seeds: bool = False

    def add(self, cost: Cost, job: PlannedJob) -> None:
        """Count a job."""
        self.jobs += 1
        self.over += job.minutes is not None and cost.total > 60 * job.minutes
        self.of_seeds = self.of_seeds or "seeds" in job.wildcards
        self.longest = max(self.longest, cost.total)
        self.startup += cost.startup
        self.seconds += cost.total
        self.by_basis[cost.basis] += cost.total

    @property
    def basis(self) -> Basis:
        """The basis of most of the seconds."""
        return max(BASES, key=lambda basis: self.by_basis[basis])


@dataclass(frozen=True)
class Plan:
    """The expected cost of a study on a machine, in seconds. `chain` lists the rules on the critical path."""

    study: str
    machine: Machine
    rules: list[RuleCost]
    dag_seconds: float
    gpu_seconds: float
    cpu_seconds: float
    wall_seconds: float
    chain: list[str]
    chain_seconds: float
    untimed: list[str]
    # The sizes of the jobs of each dataset, of a plan that was asked for them.
    sizes: dict[str, JobSize] | None = None

    @property
    def jobs(self) -> int:
        """The number of jobs."""
        return sum(rule.jobs for rule in self.rules)

    @property
    def startup_seconds(self) -> float:
        """The start-up seconds of all jobs."""
        return sum(rule.startup for rule in self.rules)

    @property
    def seconds(self) -> float:
        """The seconds of all jobs."""
        return sum(rule.seconds for rule in self.rules)

    def fraction_by_basis(self) -> dict[Basis, float]:
        """The fraction of the seconds that has each basis."""
        totals = {basis: sum(rule.by_basis[basis] for rule in self.rules) for basis in BASES}
        return {basis: seconds / self.seconds if self.seconds else 0.0 for basis, seconds in totals.items()}


def expected_cost(job: PlannedJob, works: Works, costs: Costs, machine: Machine) -> Cost:
    """The cost of a job on a machine."""
    if job.rule.startswith(UNTIMED):
        return Cost(0.0, 0.0, "measured")
    return costs.job(works.of_job(job), machine.device(job))


def plan_jobs(
    name: str, jobs: Sequence[PlannedJob], works: Works, costs: Costs, machine: Machine, dag_seconds: float
) -> Plan:
    """The plan of some jobs."""
    rules: dict[str, RuleCost] = {}
    tasks: list[Task] = []
    spent = {"cuda": 0.0, "cpu": 0.0}
    for job in jobs:
        cost = expected_cost(job, works, costs, machine)
        rule = "download" if job.rule.startswith("download_") else job.rule
        rules.setdefault(rule, RuleCost(rule)).add(cost, job)
        seconds = cost.total
        spent[machine.device(job)] += seconds
        tasks.append(Task(seconds, job.threads, job.gpus, job.after))
    ends = finish_times(tasks, machine.cores, machine.gpus or None)
    chain = longest_chain(tasks)
    return Plan(
        name,
        machine,
        sorted(rules.values(), key=lambda rule: (-rule.seconds, rule.rule)),
        dag_seconds,
        spent["cuda"],
        spent["cpu"],
        max(ends, default=0.0),
        [jobs[number].rule for number in chain],
        sum(tasks[number].seconds for number in chain),
        sorted(rule for rule in rules if rule.startswith(UNTIMED)),
    )


def plan_study(
    config: Path,
    machine: Machine,
    directory: Path,
    timings: Sequence[Path],
    everything: bool,
    profile: Path | None = None,
    cut: bool = False,
) -> Plan:
    """Plan the jobs of a study from a Snakemake dry run; with `cut`, in sizes with which none exceeds its time."""
    for path in timings:
        if not path.exists():
            raise PlumblineError(f"There are no timings in '{path}'; {NAME_TIMINGS}.")
    content = locate_files(read_config(config), [Path(), config.parent])
    works = Works(resolve(content), directory / "results")
    own = [measurement for path in timings for measurement in read_timings(path, works)]
    costs = Costs([*own, *from_results(works.results, works)], rates())
    sizes = None
    if cut:
        content = _resized(content, {dataset: JobSize() for dataset in works.resolved.study.datasets})
        whole = Works(resolve(content), works.results)
        run = dry_run(config, directory, everything, profile, content["compute"])
        sizes = job_sizes(run.jobs, whole, lambda job: expected_cost(job, whole, costs, machine).total)
        content = _resized(content, sizes)
        works = Works(resolve(content), works.results)
    run = dry_run(config, directory, everything, profile, content["compute"] if cut else None)
    plan = plan_jobs(works.resolved.study.name, run.jobs, works, costs, machine, run.seconds)
    return replace(plan, sizes=sizes)


def _resized(content: Mapping[str, Any], sizes: Mapping[str, JobSize]) -> dict[str, Any]:
    """A config with other sizes of jobs."""
    jobs = {dataset: size.model_dump() for dataset, size in sizes.items()}
    return {**content, "compute": {**(content.get("compute") or {}), "jobs": jobs}}
