"""A tiny study, its runs through SLURM in the background, and SLURM's records of their jobs."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import yaml

from plumbline.store import read_stamped

from ..pipeline.conftest import CONFIG, copy_project, write_config

STUDY = {
    **CONFIG,
    "plugins": ["plugin.py"],
    "datasets": {"mock-2": CONFIG["datasets"]["mock-2"]},
    "models": {"average-tanh": CONFIG["models"]["average-tanh"]},
    "adversaries": {},
    "measures": {
        "attention": {}, "gradient": {}, "held": {}, "held-too": {"kind": "held", "mark": "held-too"}, "hungry": {},
    },
    "protocols": {"agreement": {"statistics": ["kendall"]}, "permutation": {"permutations": 5}},
}  # fmt: skip
MARKS = ["held", "held-too"]
# The jobs that a study of faults reruns: four that explain and two that compare, in three steps.
DISTURBED = ["results/attributions", "results/scores/agreement", "results/tables/agreement.parquet"]

# What is ended with the cluster, if a test failed before it did.
STARTED: list[subprocess.Popen] = []
# Fields of the accounting for a run's jobs.
FIELDS = "JobIDRaw,Comment,State,Partition,NodeList,ReqMem,TimelimitRaw,ReqTRES"


def new_study(folder: Path) -> Path:
    """The study before any run, whose measures do not wait."""
    copy_project(folder)
    shutil.copy2(Path(__file__).with_name("plugin.py"), folder / "plugin.py")
    write_config(folder, STUDY)
    for mark in MARKS:
        (folder / mark).touch()
    return folder


def half_done(finished: Path, folder: Path, *held: str) -> Path:
    """A copy of a finished study with its models but no importances; the first job of the named measures waits."""
    shutil.copytree(finished, folder, symlinks=True)
    for path in DISTURBED:
        shutil.rmtree(folder / path) if (folder / path).is_dir() else (folder / path).unlink()
    for mark in held:
        (folder / mark).unlink()
    return folder


def set_resources(folder: Path, rule: str, **resources: str) -> None:
    """Change the resources of a rule in the profile of a study."""
    file = folder / "profiles/slurm/config.yaml"
    profile = yaml.safe_load(file.read_text())
    profile["set-resources"][rule] = {**profile["set-resources"][rule], **resources}
    file.write_text(yaml.safe_dump(profile))


def tables(folder: Path) -> dict[str, pa.Table]:
    """All Parquet files of a study's importances, scores and tables, but the timings."""
    found = [
        path for part in ("attributions", "scores", "tables") for path in (folder / "results" / part).rglob("*.parquet")
    ]
    return {str(path.relative_to(folder)): read_stamped(path)[1] for path in found if path.stem != "timings"}


def wait_for(what: str, happened: Callable[[], object], seconds: float = 120):
    """Wait until a result is true, and return it."""
    end = time.monotonic() + seconds
    while not (found := happened()):
        assert time.monotonic() < end, f"waited {seconds:.0f} s for {what} in vain"
        time.sleep(0.5)
    return found


@dataclass(frozen=True)
class Job:
    """One attempt at a job in SLURM's accounting; memory in MiB, time in minutes."""

    id: str
    rule: str
    keys: str
    state: str
    partition: str
    node: str
    memory: int
    minutes: int
    gpus: int


class Queued(NamedTuple):
    """A job in SLURM's queue; no node while it waits."""

    state: str
    node: str
    rule: str
    keys: str


@dataclass
class Run:
    """A run of Snakemake through SLURM, in the background."""

    folder: Path
    process: subprocess.Popen

    def output(self) -> str:
        return (self.folder / "run.txt").read_text()

    @property
    def name(self) -> str:
        """The name of all its jobs."""
        found = wait_for(
            "the run's name", lambda: re.search(r"SLURM run ID: (\S+)", self.output()) or self.process.poll()
        )
        assert isinstance(found, re.Match), self.output()
        return found[1]

    def queue(self) -> dict[str, Queued]:
        """Its jobs in SLURM's queue, by their ids."""
        command = ["squeue", "--noheader", "--name", self.name, "--format=%i|%T|%N|%k"]
        output = subprocess.run(command, text=True, capture_output=True, check=True).stdout
        jobs = [line.split("|", 3) for line in output.splitlines()]
        return {job: Queued(state, node, *_parts(about)) for job, state, node, about in jobs}

    def running(self, rule: str, keys: str = "") -> str:
        """Wait until a job of a rule with these last wildcards runs, and return its id."""

        def found() -> list[str]:
            queue = self.queue().items()
            return [
                job
                for job, entry in queue
                if (entry.state, entry.rule) == ("RUNNING", rule) and entry.keys.endswith(keys)
            ]

        return wait_for(f"a running job of {rule}", found)[0]

    def log(self, job: str) -> str:
        """SLURM's record of a failed job."""
        return next((self.folder / ".snakemake/slurm_logs").rglob(f"{job}.log")).read_text()

    def end(self, seconds: float = 900) -> str:
        """Wait for the end of the run, and return its output."""
        assert self.process.wait(seconds) == 0, self.output()
        return self.output()

    def jobs(self) -> list[Job]:
        """All attempts at its jobs, once the accounting has them with their ends."""

        def found() -> list[Job]:
            jobs = [_job(line) for line in _sacct(FIELDS, "--name", self.name)]
            return jobs if jobs and all(job.state not in ("PENDING", "RUNNING") for job in jobs) else []

        return wait_for("the accounting", found)


def submit(folder: Path, *targets: str, jobs: int = 4) -> Run:
    """Start a study with the profile for SLURM, but with more frequent status checks."""
    command = [sys.executable, "-m", "snakemake", *targets, "--workflow-profile", "profiles/slurm", "--jobs", str(jobs)]
    command += ["--slurm-init-seconds-before-status-checks", "4"]
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PLUMBLINE_DATA")}
    with (folder / "run.txt").open("w") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    STARTED.append(process)
    return Run(folder, process)


def _sacct(fields: str, *which: str) -> list[str]:
    command = ["sacct", "--allocations", "--duplicates", "--starttime=now-1days", "--noheader", "--parsable2"]
    done = subprocess.run([*command, f"--format={fields}", *which], text=True, capture_output=True, check=True)
    return done.stdout.splitlines()


def accounted() -> str:
    """The number of jobs in the accounting by partition, requested GPUs, node and final state."""
    counts = Counter()
    for line in _sacct("Partition,ReqTRES,NodeList,State"):
        partition, requested, node, state = line.split("|")
        gpu = re.search(r"gres/gpu=\d+", requested)
        counts[f"{partition:4} {gpu[0] if gpu else 'no GPU':10} {node:3} {state.split()[0]}"] += 1
    return "\n".join(["All jobs in sacct:", *(f"{count:4}  {what}" for what, count in sorted(counts.items()))])


def _parts(comment: str) -> tuple[str, str]:
    """Rule and wildcards, from the comment that Snakemake's SLURM plug-in gives a job."""
    rule, _, keys = comment.removeprefix("rule_").partition("_wildcards_")
    return rule, keys


def _job(line: str) -> Job:
    job, comment, state, partition, node, memory, minutes, requested = line.split("|")
    gpus = re.search(r"gres/gpu=(\d+)", requested)
    return Job(
        job, *_parts(comment), state.split()[0], partition, node, int(memory.rstrip("M")), int(minutes),
        int(gpus[1]) if gpus else 0,
    )  # fmt: skip
