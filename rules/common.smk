"""The study (`STUDY`, as configured; `RESOLVED`, with all defaults), its paths and params, and helpers of the rules."""

import os
import sys
from importlib.util import find_spec
from math import ceil
from pathlib import Path

from snakemake.exceptions import WorkflowError

# A clone has the library next to these rules, wherever they are included from; otherwise it is installed.
OWN = Path(str(workflow.current_basedir)).parent / "workflow"
if (OWN / "plumbline").is_dir():
    sys.path.insert(0, str(OWN))
    os.environ.update(PYTHONPATH=os.pathsep.join(filter(None, [str(OWN), os.environ.get("PYTHONPATH")])))
elif find_spec("plumbline") is None:
    raise WorkflowError(
        "The library of this workflow is not installed in this environment; see docs/how-to/install.md."
    )

from plumbline.config.external import locate, locate_files
from plumbline.config.masking import baseline
from plumbline.config.resolve import resolve
from plumbline.config.seeds import parse_seeds
from plumbline.config.variants import PLAIN
from plumbline.dag.study import StudyDag, one_of
from plumbline.data.raw import FETCHED, check_raw, downloads, raw_files, vector_file
from plumbline.errors import PlumblineError
from plumbline.planning.absent import absent_files
from plumbline.project import PACKAGE, PROJECT, SCRIPTS
from plumbline.runtime.provenance import text_hash
from plumbline.runtime.run import Run
from plumbline.tables.names import argument

# Folders of a study's own files: the working folder, those of its config file and the main Snakefile, and the project.
CONFIGS = [Path(file).resolve().parent for file in workflow.configfiles]
FOLDERS = [Path(), *CONFIGS, Path(workflow.basedir), PROJECT]
# A plan or a merge of finished runs may precede the raw files.
PLANNING = not {"PLUMBLINE_PLAN", "PLUMBLINE_MERGE"}.isdisjoint(os.environ)

try:
    config.update(locate_files(config, FOLDERS))
    RESOLVED = resolve(config)
    GRAPH = StudyDag(RESOLVED, FOLDERS, SCRIPTS)
    RAW = Path(os.environ.get("PLUMBLINE_DATA") or locate(GRAPH.study.raw, FOLDERS))
    # Those that the user has yet to supply are then outputs of a job.
    ABSENT = absent_files(RESOLVED, RAW) if PLANNING else []
    if not PLANNING:
        check_raw(RESOLVED, RAW)
    DOWNLOADS = downloads(RESOLVED, RAW)
except PlumblineError as error:
    raise WorkflowError(str(error)) from None

STUDY, PATHS, PARAMS = GRAPH.study, GRAPH.paths, GRAPH.params
ENVIRONMENT = "../envs/plumbline.yaml"
CELL = "{dataset}/{variant}/{model}/{seeds}"
# How work is batched: resources, not params, since changing them must not rerun any job.
COMPUTE = dict(
    token_budget=0 if STUDY.compute.token_budget == "auto" else STUDY.compute.token_budget,
    slots_per_gpu=STUDY.compute.slots_per_gpu,
)


wildcard_constraints:
    **GRAPH.wildcards,


def doubling(first):
    """Double a resource on each retry, as the job may have run out of memory or time."""
    return lambda wildcards, attempt: first * 2 ** (attempt - 1)


def time_limit(minutes):
    """The same for the minutes of a job, times the factor that the study sets for its dataset."""
    return lambda wildcards, attempt: ceil(
        minutes * STUDY.compute.job(wildcards.dataset).time_factor * 2 ** (attempt - 1)
    )


def kept(path, keep):
    """An output that is kept, or temporary if the study saves disk space."""
    return path if keep else temp(path)


def external(paths):
    """Files that are no results, such as raw data: where this workflow is a module, its prefix is not theirs."""
    return [local(str(path)) for path in paths]


def is_new(paths):
    """Whether nothing writes these raw files yet: modules of one workflow share their raw folder."""
    written = {str(path) for other in workflow.rules for path in other.output}
    return written.isdisjoint(map(str, paths))


def raw_inputs(dataset):
    """The files that a dataset is read from. Of own data, a param has the content, so that dates do not matter."""
    files = external(raw_files(RESOLVED, dataset, RAW))
    return [ancient(file) for file in files] if PARAMS.content(dataset) else files


def named_inputs(sources):
    """The files of each source as named inputs."""
    return {argument(source): [file.path for file in files] for source, files in sources.items()}


def figure_outputs(plot, caption, experiment):
    """The files of a figure; a figure of all datasets also goes into Snakemake's own report."""
    svg, *others = plot.files
    if plot.dataset:
        return [svg, *others]
    labels = {"figure": plot.kind.replace("-", " "), "about": plot.model or "whole study", "caption": caption}
    return [report(svg, category="Figures", subcategory=experiment, labels=labels), *others]


RUN = Run()


def check_own_data():
    """Before the first job, refuse own data whose rows cannot be used. The import is lazy, as every job parses this."""
    from plumbline.data.own_rows import check_rows

    try:
        for job in workflow.dag.needrun_jobs():
            if job.rule.name == "prepare" and not workflow.touch:
                check_rows(RESOLVED, job.wildcards.dataset)
    except PlumblineError as error:
        raise WorkflowError(str(error)) from None


def findings():
    """Findings for the summary of a run. The import is lazy, as every job parses the Snakefile."""
    from plumbline.papers.comparison import stored_verdict
    from plumbline.protocols.performance.table import stored_chance_summary

    return [*stored_chance_summary(Path("results")), *stored_verdict(Path("results"))]
