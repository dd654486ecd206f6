"""The jobs of a study and what they wait for, as Snakemake itself counts them."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.errors import PlumblineError
from plumbline.runtime.events import PLAN, TARGETS

# Where a project has its library and our logger for Snakemake.
PLACES = [Path("workflow/plumbline/runtime/logger"), Path("workflow")]
# Rules that do nothing but name targets.


@dataclass(frozen=True)
class PlannedJob:
    """A job. `threads`, `gpus` and `minutes` are what it asks for, `after` the numbers of jobs that it waits for."""

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
    """Snakemake's answer: the jobs, and the seconds that it took to find them."""

    jobs: list[PlannedJob]
    seconds: float


def connected(told: Sequence[dict[str, Any]]) -> list[PlannedJob]:
    """Jobs that wait for those that make their inputs; targets are left out. Snakemake tells them in any order."""
    real = sorted((job for job in told if job["rule"] not in TARGETS), key=lambda job: (job["rule"], job["outputs"]))
    maker = {path: number for number, job in enumerate(real) for path in job["outputs"]}
    return [
        PlannedJob(
            job["rule"],
            job["wildcards"],
            job["threads"],
            job["gpus"],
            job["minutes"],
            len(job["inputs"]),
            job["outputs"],
            sorted({maker[path] for path in job["inputs"] if path in maker} - {number}),
        )
        for number, job in enumerate(real)
    ]


def _sentence(told: str, study: str) -> str:
    """What Snakemake said of its refusal, as one sentence: the line after the name of its exception."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    at = next((n for n, line in enumerate(lines) if "Error" in line.split(" ")[0] or "Exception" in line), None)
    if at is None:
        return f"Snakemake could not plan {study}: {lines[-1] if lines else 'it said nothing'}"
    said = lines[at + 1] if lines[at].endswith(":") and at + 1 < len(lines) else lines[at].partition(": ")[2]
    return said or lines[at]


def dry_run(config: Path | None, directory: Path, everything: bool, profile: Path | None = None) -> DryRun:
    """The jobs that a dry run of the study finds: those that are left, or with `everything` all."""
    with tempfile.TemporaryDirectory() as folder:
        lines, ours = Path(folder, "jobs"), filter(None, [os.environ.get("PYTHONPATH")])
        environment = os.environ | {
            PLAN: str(lines),
            "PYTHONPATH": os.pathsep.join([*(str(place.absolute()) for place in PLACES), *ours]),
        }
        command = [sys.executable, "-m", "snakemake", "all", "--dry-run", "--cores", "1", "--nolock"]
        command += ["--logger", "plumbline", "--quiet", "rules", "progress", "host", "reason"]
        command += ["--directory", str(directory)]
        command += ["--forceall"] if everything else []
        command += ["--configfile", str(config)] if config else []
        command += ["--workflow-profile", str(profile)] if profile else []
        start = time.monotonic()
        done = subprocess.run(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        seconds = time.monotonic() - start
        if done.returncode:
            raise PlumblineError(_sentence(done.stdout, f"'{config}'" if config else "the default study"))
        told = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    return DryRun(connected(told), seconds)
