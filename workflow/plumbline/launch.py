"""`plumbline run`: run a study in the working folder by one Snakemake command."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from plumbline.config.external import locate, locate_files
from plumbline.config.own_data import OWN
from plumbline.config.resolve import read_config, resolve
from plumbline.config.resolved import Resolved
from plumbline.config.runs import list_runs, scorecard_gaps
from plumbline.data.raw import check_raw
from plumbline.errors import PlumblineError
from plumbline.project import DEFAULT, current_project, find_study, study_files

# Names of Snakemake's option for another working folder.
DIRECTORY = ("--directory", "-d")
# Names of its option that changes keys of the config.
CHANGES = ("--config", "-C")


@dataclass(frozen=True)
class Launch:
    """What to run: the name or config file of a study, how many cores and GPUs, and more options of Snakemake.

    By default all cores and all GPUs are used; on SLURM, the profile sets the number of jobs.
    """

    study: str = DEFAULT
    cores: int | None = None
    gpus: int | None = None
    slurm: bool = False
    options: Sequence[str] = ()

    def passes(self, *names: str) -> bool:
        """Whether Snakemake is given one of these options."""
        return any(option.partition("=")[0] in names for option in self.options)


def list_studies() -> str:
    """The studies of the project, a line each with the title, and the folder of their files."""
    project = current_project()
    published = study_files(project)
    width = max(map(len, published))
    lines = [f"{name:{width}}  {read_config(path)['name']}" for name, path in published.items()]
    return "\n".join([*lines, "", f"The workflow with these studies is in '{project}'."])


def check_environment(launch: Launch) -> None:
    """Refuse a run that Snakemake could not start or that could not write its results."""
    if find_spec("snakemake") is None:
        raise PlumblineError("Snakemake is not installed: pip install 'snakemake>=9.11,<10'.")
    if launch.slurm and find_spec("snakemake_executor_plugin_slurm") is None:
        raise PlumblineError(
            "Snakemake's plug-in for SLURM is not installed: pip install 'snakemake-executor-plugin-slurm>=2.8'."
        )
    if launch.slurm and launch.gpus == 0:
        raise PlumblineError("`--gpus 0` has no effect on SLURM: set `gpu: 0` under `train` in the profile instead.")
    if launch.gpus is not None and launch.passes("--resources"):
        raise PlumblineError(f"`--resources` replaces `--gpus`: write gpu={launch.gpus} among the resources instead.")
    if not launch.passes(*DIRECTORY) and not os.access(Path.cwd(), os.W_OK):
        raise PlumblineError(
            f"The working folder '{Path.cwd()}', where results/ would be written, is read-only; change to another "
            "folder, or add `-- --directory FOLDER`."
        )


def snakemake_command(launch: Launch, project: Path, config: Path) -> list[str]:
    """The command that runs a study. Options with several values come before one with a single value, or they would
    take a target among `launch.options` for one of theirs."""
    command = [sys.executable, "-m", "snakemake", "--configfile", str(config)]
    command += ["--resources", f"gpu={launch.gpus}"] if launch.gpus else []
    # Snakemake looks for a profile of this name in the working folder, then next to the Snakefile.
    command += ["--workflow-profile", "slurm"] if launch.slurm else []
    if launch.cores or not launch.slurm:
        command += ["--cores", str(launch.cores or "all")]
    return [*command, "--snakefile", str(project / "Snakefile"), *launch.options]


def job_environment(launch: Launch, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of the run; with 0 GPUs, jobs see none."""
    return {**environment, **({"CUDA_VISIBLE_DEVICES": ""} if launch.gpus == 0 else {})}


def check_data(resolved: Resolved, folders: Sequence[Path]) -> None:
    """Refuse runs and data that the study's jobs would refuse, so that the sentence does not end a log of Snakemake;
    else warn of what the scorecard will lack."""
    runs = list_runs(resolved)
    check_raw(resolved, Path(os.environ.get("PLUMBLINE_DATA") or locate(resolved.study.raw, folders)))
    for dataset in resolved.study.datasets:
        if resolved.declarations["dataset", dataset].name in OWN:
            # Imports what reads tables.
            from plumbline.data.own_rows import check_rows

            check_rows(resolved, dataset)
    for gap in scorecard_gaps(resolved, runs):
        print(f"plumbline: warning: {gap}", file=sys.stderr)


def run_study(launch: Launch) -> None:
    """Check the study, then replace this process by Snakemake's, which gets the signals and sets the exit status."""
    check_environment(launch)
    config, project = find_study(launch.study), current_project()
    content = read_config(config)
    # In another working folder there may be files of the study, so that Snakemake alone can check it.
    if not launch.passes(*DIRECTORY):
        folders = [Path(), config.parent, project]
        resolved = resolve(locate_files(content, folders))
        if not launch.passes(*CHANGES):
            check_data(resolved, folders)
    command = snakemake_command(launch, project, config)
    sys.stdout.flush()
    os.execve(command[0], command, job_environment(launch, os.environ))
