"""`plumbline merge`: the results of one study from several runs become one folder of results."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from plumbline.errors import PlumblineError
from plumbline.launch import Launch, check_environment, job_environment, snakemake_command
from plumbline.merge.artefacts import Artefact, check_complete, check_equal, check_manifests, find_artefacts
from plumbline.merge.jobs import CONFIG, DRAW, StudyJob, merge_environment, needed_files, record_jobs
from plumbline.merge.runs import FinishedRun, read_run, read_runs
from plumbline.merge.studies import merge_studies
from plumbline.project import current_project
from plumbline.report.manifest import MANIFEST, RESULTS


@dataclass(frozen=True)
class Merge:
    """The folders of runs, the folder of the merged study, and options of the command."""

    runs: Sequence[Path]
    into: Path
    partial: bool = False
    explorer: bool = True
    dry_run: bool = False
    cores: int | None = None


def merge_runs(merge: Merge) -> int:
    """Merge runs and make tables, figures and report; nothing is written before all checks have passed."""
    check_environment(_launch(merge))
    _check_target(merge.into)
    runs = read_runs(merge.runs)
    config = merge_studies(runs, merge.partial, merge.explorer)
    with tempfile.TemporaryDirectory() as records:
        jobs = record_jobs(config, Path(records))
        artefacts = find_artefacts(jobs, runs)
        check_complete(jobs, runs, artefacts, merge.partial)
        check_manifests(artefacts)
        for artefact in _progress(artefacts, "check"):
            check_equal(artefact)
        print(describe(runs, artefacts, jobs))
        if merge.dry_run:
            return 0
        _write(artefacts, Path(records), merge.into)
    return _summarise(merge)


def list_files(folder: Path, explorer: bool = True) -> list[str]:
    """The files of a finished run that a merge needs, relative to the given folder."""
    run = read_run(folder)
    with tempfile.TemporaryDirectory() as temporary:
        jobs = record_jobs(merge_studies([run], explorer=explorer), Path(temporary))
    artefacts = find_artefacts(jobs, [run])
    check_complete(jobs, [run], artefacts, partial=False)
    # Small records of data, by which runs without the data itself are compared.
    records = [artefact.path for artefact in artefacts if artefact.source.suffix == ".json"]
    files = {f"{RESULTS}/{MANIFEST}", *needed_files(jobs), *records}
    return [str(run.place(path).relative_to(folder)) for path in sorted(files)]


def describe(runs: Sequence[FinishedRun], artefacts: Sequence[Artefact], jobs: Iterable[StudyJob]) -> str:
    """What is taken from each run, and what Snakemake makes from it."""
    lines = []
    for run in runs:
        taken = [artefact for artefact in artefacts if artefact.runs[0] is run]
        size = sum(artefact.source.stat().st_size for artefact in taken) / 2**20
        kinds = Counter(artefact.path.split("/")[1] for artefact in taken)
        counts = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
        lines.append(f"From '{run.name}': {len(taken)} files, {size:.1f} MiB ({counts or 'all are in other runs'}).")
    made = Counter("figures" if job.rule.startswith(DRAW) else job.rule for job in jobs if job.summarises)
    parts = [f"{made['table']} tables", f"the figures of {made['figures']} protocols", "the report", "its explorer"]
    return "\n".join([*lines, f"To compute: {', '.join(parts)}."])


def _check_target(into: Path) -> None:
    """Refuse a target that exists and is not an empty folder."""
    if into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise PlumblineError(f"'{into}' exists and is not an empty folder; give a new folder for the merged study.")


def _progress(artefacts: Sequence[Artefact], task: str) -> Iterable[Artefact]:
    return tqdm(artefacts, task, unit="file", leave=False, disable=None)


def _write(artefacts: Sequence[Artefact], records: Path, into: Path) -> None:
    """Write the merged folder: artefacts, then Snakemake's records and the config; on failure remove it again."""
    existed = into.exists()
    try:
        into.mkdir(parents=True, exist_ok=True)
        _copy(artefacts, into)
        for name in (".snakemake", CONFIG):
            shutil.move(records / name, into / name)
    except BaseException as error:
        for path in into.iterdir() if existed else [into]:
            shutil.rmtree(path, ignore_errors=True)
        if isinstance(error, OSError):
            raise PlumblineError(f"The merged study cannot be written into '{into}': {error.strerror}.") from None
        raise


def _copy(artefacts: Sequence[Artefact], into: Path) -> None:
    """Copy the artefacts. All have the same time, or Snakemake would find some older than what they were made from."""
    now = time.time()
    for artefact in _progress(artefacts, "copy"):
        target = into / artefact.path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(artefact.source, target)
        os.utime(target, (now, now))


def _launch(merge: Merge) -> Launch:
    return Launch(cores=merge.cores, gpus=0, options=["--directory", str(merge.into.absolute()), "all"])


def _summarise(merge: Merge) -> int:
    """Run Snakemake in the merged folder."""
    launch = _launch(merge)
    command = snakemake_command(launch, current_project(), merge.into.absolute() / CONFIG)
    sys.stdout.flush()
    status = subprocess.run(command, env=job_environment(launch, merge_environment()), check=False).returncode
    if status == 0:
        print(f"The merged study is in '{merge.into}': {CONFIG}, and {RESULTS} with report/index.html.")
    return status
