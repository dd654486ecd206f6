"""The jobs of a merged study, as Snakemake sees them, and its records of their params."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from plumbline.errors import PlumblineError
from plumbline.planning.jobs import failure_message
from plumbline.project import current_project
from plumbline.runtime.merged_jobs import MERGE
from plumbline.store import read_json, write_text

CONFIG = "study.yaml"
# Rules that summarise the artefacts of all cells; only these run in a merge. Those of figures begin with DRAW.
SUMMARIES = ("table", "report", "explorer")
DRAW = "draw_"


@dataclass(frozen=True)
class StudyJob:
    """A job; of jobs with a manifest, its path and their params."""

    rule: str
    wildcards: dict[str, str]
    inputs: list[str]
    outputs: list[str]
    manifest: str
    params: dict[str, Any]

    @property
    def summarises(self) -> bool:
        """Whether it makes a table, figures, the report or the explorer."""
        return self.rule in SUMMARIES or self.rule.startswith(DRAW)


def write_config(folder: Path, config: Mapping[str, Any]) -> Path:
    """Write the config of a study into a folder."""
    path = folder / CONFIG
    write_text(path, yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True, width=120))
    return path


def merge_environment(jobs: str = "") -> dict[str, str]:
    """The environment of Snakemake in a merge, where raw files may be missing; `jobs` is the file for the jobs."""
    return os.environ | {MERGE: jobs}


def record_jobs(config: Mapping[str, Any], folder: Path) -> list[StudyJob]:
    """The jobs of a study. Snakemake's records in `folder`, which is empty, then have the params and inputs of all
    jobs, so that it takes the artefacts that are put there for its own."""
    path = write_config(folder, config)
    with tempfile.TemporaryDirectory() as temporary:
        records = Path(temporary, "jobs.json")
        command = [sys.executable, "-m", "snakemake", "all", "--touch", "--notemp", "--nolock", "--cores", "1"]
        command += ["--snakefile", str(current_project() / "Snakefile"), "--configfile", str(path.resolve())]
        command += ["--directory", str(folder)]
        done = subprocess.run(
            command,
            env=merge_environment(str(records)),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode:
            raise PlumblineError(f"The merged study cannot be run: {failure_message(done.stdout, 'the merged study')}")
        return [StudyJob(**job) for job in read_json(records)]


def needed_files(jobs: Sequence[StudyJob]) -> list[str]:
    """The artefacts that tables, figures, report and explorer are made from."""
    made = {path for job in jobs if job.summarises for path in job.outputs}
    read = dict.fromkeys(path for job in jobs if job.summarises for path in job.inputs)
    return [path for path in read if path not in made]
