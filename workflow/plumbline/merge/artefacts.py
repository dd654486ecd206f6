"""Which run each artefact of a merged study is taken from, and the checks that all of them belong to one study."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.errors import DamagedError, PlumblineError
from plumbline.merge.differences import Difference, first_difference, same_artefact
from plumbline.merge.jobs import StudyJob, needed_files
from plumbline.merge.runs import FinishedRun
from plumbline.report.manifest import RESULTS
from plumbline.runtime.progress import job_name
from plumbline.runtime.verify import is_damaged
from plumbline.store import read_json

# The most missing jobs that a message lists.
MOST_LISTED = 20
# The keys of `compute` with which the outputs of a rule are deleted once they were used.
DELETED_BY = {
    "manipulate": "keep_variants",
    "attribute_masked": "keep_retrained",
    "join_masked_importances": "keep_retrained",
}
# Params that do not determine results: the folder of raw files.
FREE_PARAMS = ("raw",)


@dataclass(frozen=True)
class Artefact:
    """A file of the merged study, the job that wrote it and the runs that have it; it is taken from the first."""

    path: str
    job: StudyJob
    runs: list[FinishedRun]

    @property
    def source(self) -> Path:
        """The file that is taken."""
        return self.runs[0].place(self.path)


def find_artefacts(jobs: Sequence[StudyJob], runs: Sequence[FinishedRun]) -> list[Artefact]:
    """The files of a merged study that some run has, with their manifest, other than tables, figures and report."""
    found = []
    for job in jobs:
        having = [] if job.summarises else [run for run in runs if _has_run(run, job)]
        for path in job.outputs if having else []:
            if path.startswith(f"{RESULTS}/") and (owners := [run for run in having if run.place(path).is_file()]):
                found.append(Artefact(path, job, owners))
    return found


def _has_run(run: FinishedRun, job: StudyJob) -> bool:
    return run.runs_job(job.wildcards) and (not job.manifest or run.place(job.manifest).is_file())


def check_complete(
    jobs: Sequence[StudyJob], runs: Sequence[FinishedRun], artefacts: Iterable[Artefact], partial: bool
) -> None:
    """Refuse a merge that lacks files: those that a run should have, or cells that no run has."""
    missing = {*needed_files(jobs)} - {artefact.path for artefact in artefacts}
    absent: list[StudyJob] = []
    for job in jobs:
        lacking = [] if job.summarises else [path for path in job.outputs if path in missing]
        if lacking and (run := _run_of(job, runs)):
            # Without its manifest, no file of a job is taken.
            path = next(path for path in lacking if not run.place(path).is_file())
            raise PlumblineError(
                f"The run in '{run.name}' is incomplete: it has no '{path}', which a merge needs"
                f"{_deletion_hint(run, job) or _explorer_hint(jobs, path)}."
            )
        absent += [job] if lacking else []
    if absent:
        names = [job_name(job.rule, job.wildcards) for job in absent]
        more = [f"and {len(names) - MOST_LISTED} more"] if len(names) > MOST_LISTED else []
        remedy = (
            ("they cannot be left out with --partial") if partial else "run them too, or leave them out with --partial"
        )
        lines = "".join(f"\n  {name}" for name in [*names[:MOST_LISTED], *more])
        raise PlumblineError(f"No run has these {len(names)} jobs of the merged study; {remedy}:{lines}")


def _run_of(job: StudyJob, runs: Sequence[FinishedRun]) -> FinishedRun | None:
    """The run whose study includes a job."""
    keys = [job.wildcards.get(key) for key in ("dataset", "model", "seeds")]
    for run in runs:
        cells = [*run.runs.cells, *run.runs.adversaries]
        trained = None in keys or any([cell.dataset, cell.model, cell.seeds] == keys for cell in cells)
        if trained and run.runs_job(job.wildcards):
            return run
    return None


def _deletion_hint(run: FinishedRun, job: StudyJob) -> str:
    """How to keep a file that the run deleted."""
    key = DELETED_BY.get(job.rule, "")
    deleted = key and not getattr(run.study.compute, key)
    return f"; it was deleted, because `compute.{key}` is false: set it to true and run again" if deleted else ""


def _explorer_hint(jobs: Sequence[StudyJob], path: str) -> str:
    """What to do about a file that only the explorer reads."""
    readers = {job.rule for job in jobs if path in job.inputs and job.summarises}
    return " for the explorer; add --no-explorer to merge without it" if readers == {"explorer"} else ""


def check_manifests(artefacts: Iterable[Artefact]) -> None:
    """Refuse artefacts that were made with other code, options or data than those of the merged study."""
    for artefact in artefacts:
        for run in artefact.runs if artefact.path == artefact.job.manifest else []:
            manifest = read_json(run.place(artefact.path))
            recorded = manifest.get("config", {}) if isinstance(manifest, dict) else {}
            params = {key: value for key, value in artefact.job.params.items() if key not in FREE_PARAMS}
            # Options say more than the hash of code, which differs with the objects that they name.
            for part in (sorted(params.keys() - {"code"}), ["code"]):
                made, wanted = ({key: of.get(key) for key in part} for of in (recorded, params))
                if found := first_difference(made, wanted):
                    raise PlumblineError(_made_differently(run, artefact, found))


def _made_differently(run: FinishedRun, artefact: Artefact, found: Difference) -> str:
    file = f"'{run.place(artefact.path)}'"
    if found.key == "code":
        return (
            f"{file} was computed by another version of the code of rule '{artefact.job.rule}'; merge with the version "
            "of plumbline that ran all parts, or run this part again with this version."
        )
    if found.key == "content":
        return (
            f"{file} was computed from other data of '{artefact.job.wildcards['dataset']}' than the files of the study "
            "on this machine; use the same files."
        )
    return (
        f"{file} was computed with `{found.key}` {found.one!r}, but it is {found.other!r} in the merged study; only "
        "parts of one study can be merged."
    )


def check_equal(artefact: Artefact) -> None:
    """Refuse a damaged file, and a file that two runs have with different content."""
    first = artefact.runs[0]
    for run in artefact.runs:
        if is_damaged(run.place(artefact.path)):
            raise DamagedError(run.place(artefact.path), "is damaged")
    if artefact.path == artefact.job.manifest:
        return
    for run in artefact.runs[1:]:
        if not same_artefact(artefact.source, run.place(artefact.path)):
            dataset = artefact.job.wildcards.get("dataset", "")
            wrong = (
                f"they did not read the same data of '{dataset}'"
                if artefact.path.startswith(f"{RESULTS}/data/")
                else "the runs have different results for the same cell; leave it out of one of them"
            )
            raise PlumblineError(f"'{artefact.path}' differs between '{first.name}' and '{run.name}': {wrong}.")
