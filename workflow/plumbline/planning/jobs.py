"""The jobs of a study and their dependencies, from a Snakemake dry run."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.errors import PlumblineError
from plumbline.project import current_project, library
from plumbline.runtime.events import PLAN, TARGETS


@dataclass(frozen=True)
class PlannedJob:
    """A job: `threads`, `gpus` and `minutes` are what it requests, `after` the indices of jobs that it depends on."""

    rule: str
    wildcards: dict[str, str]
    threads: int
    gpus: int
    minutes: int | None
    inputs: int
    outputs: list[str]
    after: list[int]


@dataclass(frozen=True)
class DryRun:
    """The jobs of a dry run, and the seconds that Snakemake took to build the DAG."""

    jobs: list[PlannedJob]
    seconds: float


def connect_jobs(records: Sequence[dict[str, Any]]) -> list[PlannedJob]:
    """Jobs that depend on those that make their inputs, without target rules, in an order of their own."""
    jobs = sorted((job for job in records if job["rule"] not in TARGETS), key=lambda job: (job["rule"], job["outputs"]))
    maker = {path: number for number, job in enumerate(jobs) for path in job["outputs"]}
    return [
        PlannedJob(
            **{key: job[key] for key in ("rule", "wildcards", "threads", "gpus", "minutes", "outputs")},
            inputs=len(job["inputs"]),
            after=sorted({maker[path] for path in job["inputs"] if path in maker} - {number}),
        )
        for number, job in enumerate(jobs)
    ]


def failure_message(output: str, study: str) -> str:
    """The message of Snakemake's exception: the line after the exception's name."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    at = next((n for n, line in enumerate(lines) if "Error" in line.split(" ")[0] or "Exception" in line), None)
    if at is None:
        return f"Snakemake could not plan '{study}': {lines[-1] if lines else 'it printed nothing'}"
    message = lines[at + 1] if lines[at].endswith(":") and at + 1 < len(lines) else lines[at].partition(": ")[2]
    return message or lines[at]


def dry_run(
    config: Path,
    directory: Path,
    everything: bool,
    profile: Path | None = None,
    compute: Mapping[str, Any] | None = None,
) -> DryRun:
    """The jobs of a study from a dry run: those left to do, or all with `everything`. `compute` replaces values
    of that section of the config."""
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder, "jobs")
        project = current_project()
        # The library of the project, and its logger plug-in for Snakemake.
        package = library(project)
        paths = [str(package / "runtime" / "logger"), str(package.parent), os.environ.get("PYTHONPATH")]
        environment = os.environ | {PLAN: str(records), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        command = [sys.executable, "-m", "snakemake", "all", "--dry-run", "--cores", "1", "--nolock"]
        command += ["--snakefile", str(project / "Snakefile")]
        command += ["--logger", "plumbline", "--quiet", "rules", "progress", "host", "reason"]
        command += ["--directory", str(directory)]
        command += ["--forceall"] if everything else []
        configs = [config]
        if compute:
            # Snakemake merges several files; the last takes precedence.
            configs.append(Path(folder, "compute.json"))
            configs[-1].write_text(json.dumps({"compute": compute}), encoding="utf-8")
        command += ["--configfile", *map(str, configs)]
        command += ["--workflow-profile", str(profile)] if profile else []
        start = time.monotonic()
        done = subprocess.run(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        seconds = time.monotonic() - start
        if done.returncode:
            raise PlumblineError(failure_message(done.stdout, str(config)))
        lines = records.read_text(encoding="utf-8").splitlines()
    return DryRun(connect_jobs([json.loads(line) for line in lines]), seconds)
