"""The arguments of the command `plumbline`."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from plumbline import __version__
from plumbline.project import DEFAULT
from plumbline.registry import KINDS

DESCRIPTION = "Run, plan and record studies, list registered objects, check your own methods, find damaged files."


def parser() -> argparse.ArgumentParser:
    """The parser of all commands and their options."""
    top = argparse.ArgumentParser(prog="plumbline", description=DESCRIPTION)
    top.add_argument("--version", action="version", version=f"plumbline {__version__}")
    commands = top.add_subparsers(dest="command", required=True)
    running = commands.add_parser(
        "run",
        help="run a study in the working folder",
        usage="plumbline run [STUDY | FILE] [--cores N] [--gpus N] [--slurm] [-- OPTIONS OF SNAKEMAKE]",
    )
    running.add_argument(
        "study", nargs="?", default=DEFAULT, help="a name of --list or a config file; by default the default study"
    )
    running.add_argument("--list", action="store_true", help="list the studies that come with plumbline")
    running.add_argument("--cores", type=_at_least(1), help="number of cores; by default all")
    running.add_argument("--gpus", type=_at_least(0), help="jobs on GPUs at a time; 0 computes on cores only")
    running.add_argument("--slurm", action="store_true", help="submit jobs to SLURM by the profile profiles/slurm")
    runs = commands.add_parser("runs", help="list all valid runs of a study, and why others are excluded")
    runs.add_argument("config", type=Path, nargs="?", default=Path(DEFAULT), help="by default the default study")
    listing = commands.add_parser("list", help="list registered objects")
    listing.add_argument("kind", type=lambda word: f"{word.removesuffix('s')}s", choices=[f"{kind}s" for kind in KINDS])
    listing.add_argument("--plugin", type=Path, action="append", default=[])
    checking = commands.add_parser(
        "check",
        help="preview your own data in a config, or report what is wrong with your own measures, models, ...",
        description="Check a config before a run and preview the data of your own that it names; or check Python files "
        "that declare measures, datasets, models or protocols of your own.",
    )
    checking.add_argument(
        "file", type=Path, nargs="+", help="configs (.yaml), or Python files with declarations of your own"
    )
    checking.add_argument(
        "--raw",
        type=Path,
        default=Path(os.environ.get("PLUMBLINE_DATA") or "raw"),
        help="folder of the publishers' files that datasets read; by default PLUMBLINE_DATA, or raw",
    )
    checking.add_argument("--traceback", action="store_true", help="show the tracebacks of exceptions")
    new = commands.add_parser("new", help="write a working template of your own object and its test")
    new.add_argument("kind", choices=[kind for kind in KINDS if kind != "metric"])
    new.add_argument("name", help="its name in configs, such as late-words")
    new.add_argument("--folder", type=Path, default=Path(), help="where to write; by default the working folder")
    planning = commands.add_parser("plan", help="estimate the jobs, start-up times and hours of a study")
    planning.add_argument("config", type=Path, nargs="*", help="studies to plan; by default the default study")
    planning.add_argument("--configfile", type=Path, nargs="+", default=[], help="the same, like Snakemake's option")
    planning.add_argument("--gpus", type=_at_least(0), help="number of GPUs; by default those of this machine")
    planning.add_argument("--cores", type=_at_least(1), default=os.cpu_count() or 1, help="likewise for cores")
    planning.add_argument(
        "--timings", type=Path, nargs="+", default=[], help="timings.parquet, or results, of other runs"
    )
    planning.add_argument("--directory", type=Path, default=Path(), help="the working folder, like Snakemake's option")
    planning.add_argument("--workflow-profile", type=Path, help="like Snakemake's option, such as profiles/slurm")
    planning.add_argument(
        "--cut", action="store_true", help="cut jobs that would exceed the time they request, and print the lines"
    )
    planning.add_argument("--all", action="store_true", help="include jobs that are already done")
    planning.add_argument("--json", type=Path, help="also write the list of plans, in seconds, to this file")
    drawing = commands.add_parser("graph", help="draw the rules of a study; needs graphviz")
    drawing.add_argument("file", type=Path, help="the SVG file to write")
    drawing.add_argument("--packages", action="store_true", help="draw the packages of a clone; needs no graphviz")
    drawing.add_argument("--configfile", type=Path, default=Path(DEFAULT), help="a study; by default the default study")
    generating = commands.add_parser(
        "generate", help="write the schema, the reference page and the comments of configs"
    )
    generating.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    generating.add_argument("--project", type=Path, default=Path())
    merging = commands.add_parser(
        "merge",
        help="join runs of parts of one study into one folder of results",
        usage="plumbline merge RUN RUN ... --into DIR [--partial] [--no-explorer] [--dry-run] [--cores N]\n"
        "       plumbline merge --list RUN [--no-explorer]",
    )
    merging.add_argument("run", type=Path, nargs="+", help="folders in which parts of the study ran, or their results")
    merging.add_argument("--into", type=Path, metavar="DIR", help="a new folder for the merged study")
    merging.add_argument("--partial", action="store_true", help="leave out cells that no run has; else they are listed")
    merging.add_argument(
        "--no-explorer", action="store_true", help="an explorer without instances, which runs may then lack"
    )
    merging.add_argument("--dry-run", action="store_true", help="check the runs and show what would be taken and made")
    merging.add_argument("--list", action="store_true", help="only list the files of a run that a merge needs")
    merging.add_argument("--cores", type=_at_least(1), help="number of cores; by default all")
    verifying = commands.add_parser("verify", help="find damaged files of a study and set them aside")
    verifying.add_argument("results", type=Path, nargs="?", default=Path("results"), help="by default results")
    verifying.add_argument("--list", action="store_true", help="only list them")
    recording = commands.add_parser("record", help="keep the tables, config and manifest of a finished run in a folder")
    recording.add_argument("results", type=Path, nargs="?", default=Path("results"))
    recording.add_argument("--into", type=Path, required=True, metavar="FOLDER")
    recording.add_argument("--note", default="", help="such as the hardware; it goes into the manifest")
    filling = commands.add_parser("fill", help="write a page whose numbers are read from a recorded run")
    filling.add_argument("template", type=Path, help="a Jinja template, by default next to the recorded tables")
    filling.add_argument("--into", type=Path, metavar="FILE", help="by default it is printed")
    filling.add_argument("--run", type=Path, metavar="FOLDER", help="a recorded run elsewhere")
    watching = commands.add_parser("progress", help="show the running jobs of a study, from another terminal")
    watching.add_argument("results", type=Path, nargs="?", default=Path("results"), help="by default results")
    return top


def _at_least(least: int) -> Callable[[str], int]:
    """The argparse type of a whole number of at least `least`."""

    def parse(text: str) -> int:
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of {least} or more")
        return int(text)

    return parse
