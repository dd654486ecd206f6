"""A study's plan: how many jobs of each kind, their expected seconds, and the hours on a machine."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plumbline.config.external import with_files_located
from plumbline.config.resolve import read_config, resolve
from plumbline.errors import PlumblineError
from plumbline.planning.cost import BASES, Basis, Cost, Costs
from plumbline.planning.jobs import PlannedJob, dry_run
from plumbline.planning.measured import NAME_TIMINGS, of_results, rates, read_timings
from plumbline.planning.schedule import Task, finish_times, longest_chain
from plumbline.planning.work import Works

# Downloads take what the line takes, and files that a person brings what the person takes.
UNTIMED = ("download", "bring", "fetch")


@dataclass(frozen=True)
class Machine:
    """What jobs may hold at a time. Without a GPU all of them run on cores."""

    gpus: int
    cores: int

    def __str__(self) -> str:
        cores = f"{self.cores} core{'s' * (self.cores != 1)}"
        return f"{self.gpus} GPU{'s' * (self.gpus != 1)} and {cores}" if self.gpus else cores


@dataclass
class RuleCost:
    """The jobs of one rule, with sums of their seconds by what these rest on."""

    rule: str
    jobs: int = 0
    startup: float = 0.0
    seconds: float = 0.0
    by_basis: dict[Basis, float] = field(default_factory=lambda: dict.fromkeys(BASES, 0.0))
    # How many are expected to outlast the minutes that they ask for, and the longest of all jobs.
    over: int = 0
    longest: float = 0.0
    # Whether they are of blocks of seeds, which can be made smaller.
    of_seeds: bool = False

    def add(self, cost: Cost, job: PlannedJob) -> None:
        """Count a job."""
        self.jobs += 1
        self.over += job.minutes is not None and cost.startup + cost.seconds > 60 * job.minutes
        self.of_seeds = self.of_seeds or "seeds" in job.wildcards
        self.longest = max(self.longest, cost.startup + cost.seconds)
        self.startup += cost.startup
        self.seconds += cost.startup + cost.seconds
        self.by_basis[cost.basis] += cost.startup + cost.seconds

    @property
    def basis(self) -> Basis:
        """What most of the seconds rest on."""
        return max(BASES, key=lambda basis: self.by_basis[basis])


@dataclass(frozen=True)
class Plan:
    """What a study will take on a machine, in seconds. `chain` are rules on the longest chain of dependencies."""

    study: str
    machine: Machine
    kinds: list[RuleCost]
    dag_seconds: float
    gpu_seconds: float
    cpu_seconds: float
    wall_seconds: float
    chain: list[str]
    chain_seconds: float
    untimed: list[str]

    @property
    def jobs(self) -> int:
        """How many jobs there are."""
        return sum(kind.jobs for kind in self.kinds)

    @property
    def startup_seconds(self) -> float:
        """How much of the seconds is start-up."""
        return sum(kind.startup for kind in self.kinds)

    @property
    def seconds(self) -> float:
        """The seconds of all jobs together."""
        return sum(kind.seconds for kind in self.kinds)

    def shares(self) -> dict[Basis, float]:
        """The share of the seconds by what they rest on."""
        whole = {basis: sum(kind.by_basis[basis] for kind in self.kinds) for basis in BASES}
        return {basis: seconds / self.seconds if self.seconds else 0.0 for basis, seconds in whole.items()}


def untimed(rule: str) -> bool:
    """Whether a rule's seconds cannot be foretold by any machine."""
    return rule.startswith(UNTIMED)


def plan_jobs(
    name: str, jobs: Sequence[PlannedJob], works: Works, costs: Costs, machine: Machine, dag_seconds: float
) -> Plan:
    """The plan of some jobs."""
    kinds: dict[str, RuleCost] = {}
    tasks: list[Task] = []
    spent = {"cuda": 0.0, "cpu": 0.0}
    for job in jobs:
        device = "cuda" if machine.gpus and job.gpus else "cpu"
        cost = Cost(0.0, 0.0, "measured") if untimed(job.rule) else costs.job(works.of(job), device)
        rule = "download" if job.rule.startswith("download_") else job.rule
        kinds.setdefault(rule, RuleCost(rule)).add(cost, job)
        whole = cost.startup + cost.seconds
        spent[device] += whole
        tasks.append(Task(whole, job.threads, job.gpus, job.after))
    ends = finish_times(tasks, machine.cores, machine.gpus or None)
    chain = longest_chain(tasks)
    return Plan(
        name,
        machine,
        sorted(kinds.values(), key=lambda kind: (-kind.seconds, kind.rule)),
        dag_seconds,
        spent["cuda"],
        spent["cpu"],
        max(ends, default=0.0),
        [jobs[number].rule for number in chain],
        sum(tasks[number].seconds for number in chain),
        sorted(rule for rule in kinds if untimed(rule)),
    )


def plan_study(
    config: Path | None,
    machine: Machine,
    directory: Path,
    timings: Sequence[Path],
    everything: bool,
    profile: Path | None = None,
) -> Plan:
    """Ask Snakemake for a study's jobs and plan them."""
    for path in timings:
        if not path.exists():
            raise PlumblineError(f"There are no timings in '{path}'; {NAME_TIMINGS}.")
    if not Path("Snakefile").exists():
        raise PlumblineError("There is no Snakefile in this folder; run `plumbline plan` in the project's folder.")
    path = config or Path("config.yaml")
    resolved = resolve(with_files_located(read_config(path), [Path(), path.parent]))
    works = Works(resolved, directory / "results")
    own = [one for path in timings for one in read_timings(path, works)]
    asked = dry_run(config, directory, everything, profile)
    costs = Costs([*own, *of_results(works.results, works)], rates())
    return plan_jobs(resolved.study.name, asked.jobs, works, costs, machine, asked.seconds)
