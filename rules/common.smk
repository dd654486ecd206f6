"""The study that runs, as `STUDY`, and what surrounds a run. The library says what rules read and are told."""

import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

LIBRARY = Path(workflow.basedir, "workflow")
sys.path.insert(0, str(LIBRARY))
os.environ.update(PYTHONPATH=os.pathsep.join(filter(None, [str(LIBRARY), os.environ.get("PYTHONPATH")])))

from plumbline.config.external import located, with_files_located
from plumbline.config.masking import baseline
from plumbline.config.resolve import resolve
from plumbline.config.seeds import parse_seeds
from plumbline.config.variants import PLAIN
from plumbline.dag.study import StudyDag, files_of, one_of
from plumbline.data.raw import FETCHED, check_raw, downloads, raw_files, vector_file
from plumbline.errors import PlumblineError
from plumbline.planning.absent import absent_files
from plumbline.runtime.provenance import text_hash
from plumbline.runtime.run import Run
from plumbline.tables.names import argument

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


RUN = Run()


def findings():
    """What a run found, for its last lines. Imported late, as every job reads the Snakefile."""
    from plumbline.papers.comparison import reproduced

    return reproduced(Path("results"))
