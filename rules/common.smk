"""The study that runs, as `STUDY`, and what surrounds a run. The library says what rules read and are told."""

import os
import sys
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

LIBRARY = Path(workflow.basedir, "workflow")
sys.path.insert(0, str(LIBRARY))
os.environ.update(PYTHONPATH=os.pathsep.join(filter(None, [str(LIBRARY), os.environ.get("PYTHONPATH")])))

from plumbline.config.external import located, with_files_located
from plumbline.config.masking import baseline
from plumbline.config.variants import PLAIN
from plumbline.config.seeds import parse_seeds
from plumbline.config.resolve import resolve
from plumbline.dag.paths import folder
from plumbline.dag.study import StudyDag, files_of, one_of
from plumbline.data.raw import FETCHED, check_raw, downloads, raw_files, vectors_of
from plumbline.errors import PlumblineError
from plumbline.planning.absent import absent_files
from plumbline.runtime.corruption import ASIDE, set_aside_noted
from plumbline.runtime.failures import failures, tell
from plumbline.runtime.fork_server import FEWEST_JOBS, ForkServer
from plumbline.runtime.live import Live
from plumbline.runtime.orphans import comment, mark_processes, stop_leftovers
from plumbline.runtime.progress import forget, job_key, job_name
from plumbline.runtime.provenance import text_hash
from plumbline.runtime.run_log import make_brief
from plumbline.runtime.scheduling import remove_default_rate_limit, retry_only_what_may_be_cured
from plumbline.tables.sources import argument

# Where a study's own files may lie: as they are named, beside its config file, or in the project.
PLACES = [Path(), *(Path(file).resolve().parent for file in workflow.configfiles), Path(workflow.basedir)]
PLANNING = "PLUMBLINE_PLAN" in os.environ

try:
    config.update(with_files_located(config, PLACES))
    RESOLVED = resolve(config)
    GRAPH = StudyDag(RESOLVED, PLACES, LIBRARY / "scripts")
    RAW = Path(os.environ.get("PLUMBLINE_DATA") or located(GRAPH.study.raw, PLACES))
    # A plan may be made before the files are there: those that a person has yet to bring are then a job's outputs.
    ABSENT = absent_files(RESOLVED, RAW) if PLANNING else []
    if not PLANNING:
        check_raw(RESOLVED, RAW)
    DOWNLOADS = downloads(RESOLVED, RAW)
except PlumblineError as error:
    raise WorkflowError(str(error)) from None

STUDY, PATHS, PARAMS = GRAPH.study, GRAPH.paths, GRAPH.params
ENVIRONMENT = "../envs/plumbline.yaml"
CELL = "{dataset}/{variant}/{model}/{seeds}"
# How work is cut and shared: resources, because a change of them must rerun nothing.
COMPUTE = dict(
    token_budget=0 if STUDY.compute.token_budget == "auto" else STUDY.compute.token_budget,
    slots_per_gpu=STUDY.compute.slots_per_gpu,
)


wildcard_constraints:
    **GRAPH.wildcards,


def doubling(first):
    """Twice as much on each retry: a job that ran out of memory or time needs more."""
    return lambda wildcards, attempt: first * 2 ** (attempt - 1)


def kept(path, wanted):
    """An output that stays, unless the study would rather have the room."""
    return path if wanted else temp(path)


def named(files):
    """The files of each source as named inputs."""
    return {argument(source): [file.path for file in found] for source, found in files.items()}


def reported(plot, caption, experiment):
    """The files of a figure; one of several datasets and models also goes into Snakemake's own report."""
    svg, *others = files_of(plot)
    if plot.dataset:
        return [svg, *others]
    labels = {"figure": plot.kind.replace("-", " "), "about": plot.model or "whole study", "caption": caption}
    return [report(svg, category="Figures", subcategory=experiment, labels=labels), *others]


RESULTS, FORKS = Path("results"), ForkServer()
LIVE = Live(RESULTS, lambda: dict(map(named_job, list(workflow.scheduler.running))))


def stop_what_was_left():
    """Before the first job: stop what an earlier run of the same jobs left behind when it was killed."""
    jobs = {comment(job.rule.name, job.wildcards) for job in workflow.dag.needrun_jobs()}
    try:
        told = stop_leftovers(Path.cwd(), jobs)
    except PlumblineError as error:
        raise WorkflowError(str(error)) from None
    if told:
        print(f"plumbline: {told}", file=sys.stderr)


@cache
def named_job(job):
    """A job's key and name, as it gives them itself."""
    return job_key(job.output), job_name(job.rule.name, job.wildcards)


def begin():
    """Before the first job: nothing of an earlier run is left, and from now on running jobs are shown."""
    stop_what_was_left()
    mark_processes()
    forget(RESULTS)
    remove_default_rate_limit(workflow.scheduler)
    retry_only_what_may_be_cured(workflow.scheduler)
    jobs = len(list(workflow.dag.needrun_jobs()))
    if workflow.local_exec and jobs >= FEWEST_JOBS:
        FORKS.start()
    if not LIVE.start() and not workflow.output_settings.verbose:
        make_brief(logger, jobs)


def end(logs, failed):
    """After the last job: what ran and what failed. The run's log may be several files."""
    from plumbline.runtime.summary import ran, summary  # Only here: it would slow the start of every job.

    LIVE.stop()
    FORKS.stop()
    if workflow.touch:
        return
    files = [logs] if isinstance(logs, str) else logs
    told = "".join(Path(file).read_text(encoding="utf-8", errors="replace") for file in files)
    dag = workflow.dag
    done = sum(not dag.needrun(job) for job in dag.jobs)
    lines = [summary(told, done, [one.reason for one in GRAPH.runs.excluded], RESULTS)]
    # Jobs found these to be damaged; they are missing from now on, and so the next run makes them anew.
    aside = [f"plumbline: '{path}' is damaged and set aside as '{path}{ASIDE}'." for path in set_aside_noted()]
    if failed:
        lines = [*ran(told, done), *([tell(found)] if (found := failures(told, Path.cwd())) else [])]
    print("", *lines, *aside, "", sep="\n", file=sys.stderr)
