"""`plumbline merge`: the results of one study from several runs become one folder of results."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from plumbline.config.schema import Study
from plumbline.errors import PlumblineError
from plumbline.launch import Launch, check_environment, snakemake_command
from plumbline.merge.artefacts import Artefact, check_complete, check_equal, check_manifests, find_artefacts
from plumbline.merge.jobs import CONFIG, DRAW, StudyJob, merge_environment, needed_files, record_jobs
from plumbline.merge.runs import MANIFEST, RESULTS, read_run, read_runs
from plumbline.merge.studies import merge_studies
from plumbline.project import current_project


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
    check_environment(Launch())
    _check_target(merge.into)
    runs = read_runs(merge.runs)
    config = merge_studies(runs, merge.partial, merge.explorer)
    with _staging(merge) as folder:
        jobs = record_jobs(config, folder)
        artefacts = find_artefacts(jobs, runs)
        check_complete(jobs, runs, artefacts, merge.partial)
        check_manifests(artefacts)
        for artefact in _progress(artefacts, "check"):
            check_equal(artefact)
        print(describe(artefacts, jobs))
        if merge.dry_run:
            return 0
        _copy(artefacts, folder)
        _publish(folder, merge.into)
    return _summarise(merge)


def list_files(folder: Path, explorer: bool = True) -> list[str]:
    """The files of a finished run that a merge needs, relative to the given folder."""
    run = read_run(folder)
    report = {**run.study.report.model_dump(), **({} if explorer else {"examples": 0})}
    config = Study(**run.study.model_dump() | {"report": report}).model_dump(exclude_defaults=True)
    with tempfile.TemporaryDirectory() as temporary:
        jobs = record_jobs({**config, "name": run.study.name}, Path(temporary))
    files = [f"{RESULTS}/{MANIFEST}", *needed_files(jobs)]
    for path in files:
        if not run.place(path).is_file():
            raise PlumblineError(f"The run in '{folder}' is incomplete: it has no '{path}'.")
    return [str(run.place(path).relative_to(folder)) for path in sorted(files)]


def describe(artefacts: Iterable[Artefact], jobs: Iterable[StudyJob]) -> str:
    """What is taken from each run, and what Snakemake makes from it."""
    files: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for artefact in artefacts:
        files[artefact.runs[0].name] += 1
        sizes[artefact.runs[0].name] += artefact.source.stat().st_size
    lines = [f"{files[name]} files, {sizes[name] / 2**20:.1f} MiB, from '{name}'" for name in files]
    made = Counter("figures" if job.rule.startswith(DRAW) else job.rule for job in jobs if job.summarises)
    tables, drawings = made.pop("table", 0), made.pop("figures", 0)
    lines.append(f"To make from these: {tables} tables, {drawings} sets of figures, {' and '.join(sorted(made))}.")
    return "\n".join(lines)


def _check_target(into: Path) -> None:
    """Refuse a target that exists and is not an empty folder."""
    if into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise PlumblineError(f"'{into}' exists and is not an empty folder; name a new folder for the merged study.")
    if not into.absolute().parent.is_dir():
        raise PlumblineError(f"There is no folder '{into.absolute().parent}' for '{into.name}'; make it first.")


@contextmanager
def _staging(merge: Merge) -> Iterator[Path]:
    """A folder next to the target, which becomes the target or is removed; elsewhere for a dry run."""
    where = None if merge.dry_run else merge.into.absolute().parent
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{merge.into.name}.", dir=where))
    except OSError as error:
        raise PlumblineError(f"You may not write into '{where}': {error.strerror}.") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _progress(artefacts: Sequence[Artefact], task: str) -> Iterable[Artefact]:
    return tqdm(artefacts, task, unit="file", leave=False, disable=None)


def _copy(artefacts: Sequence[Artefact], folder: Path) -> None:
    """Copy the artefacts. All have the same time, or Snakemake would find some older than what they were made from."""
    # Empty logs.
    shutil.rmtree(folder / RESULTS, ignore_errors=True)
    now = time.time()
    for artefact in _progress(artefacts, "copy"):
        target = folder / artefact.path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(artefact.source, target)
        os.utime(target, (now, now))


def _publish(folder: Path, into: Path) -> None:
    """Move the folder to its place, with the permissions of a new folder."""
    into.mkdir(exist_ok=True)
    folder.chmod(into.stat().st_mode)
    os.replace(folder, into)


def _summarise(merge: Merge) -> int:
    """Run Snakemake in the merged folder."""
    project, folder = current_project(), merge.into.absolute()
    launch = Launch(cores=merge.cores, gpus=0, options=["--directory", str(folder), "all"])
    command = snakemake_command(launch, project, folder / CONFIG)
    sys.stdout.flush()
    status = subprocess.run(command, env=merge_environment(), check=False).returncode
    if status == 0:
        print(f"The merged study is in '{merge.into}': {CONFIG}, and {RESULTS} with report/index.html.")
    return status
