"""The arguments of the command `plumbline`."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from plumbline import __version__
from plumbline.project import DEFAULT
from plumbline.registry import KINDS

DESCRIPTION = "Run, plan and record studies, list registered objects, check your own methods, find damaged files."
STUDY = "name of a study (`plumbline run --list`) or a config file; default: the default study"
RESULTS = "results folder of a study; default: results"
CORES = "number of CPU cores; default: all"


class _HelpFormatter(argparse.HelpFormatter):
    """Help that keeps the line breaks of examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        lines = [(line.lstrip(), line[: len(line) - len(line.lstrip())]) for line in text.split("\n")]
        return "\n".join(fill(line, width, f"{indent}{own}") for line, own in lines)


def parser() -> argparse.ArgumentParser:
    """The parser of all commands and their options."""
    top = argparse.ArgumentParser(
        prog="plumbline",
        description=DESCRIPTION,
        epilog="`plumbline COMMAND --help` explains the arguments of a command.",
    )
    top.add_argument("--version", action="version", version=f"plumbline {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(
        name: str, summary: str, *examples: str, description: str = "", usage: str | None = None
    ) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=summary,
            description=description or f"{summary[0].upper()}{summary[1:]}.",
            epilog="\n".join([f"example{'s' * (len(examples) > 1)}:", *(f"  {line}" for line in examples)]),
            usage=usage,
            formatter_class=_HelpFormatter,
        )

    running = command(
        "run",
        "run a study in the working folder",
        "plumbline run scorecard-sst --cores 8",
        "plumbline run my.yaml -- --dry-run",
        description="Run a study in the working folder; its results are written to results/. Arguments after `--` are "
        "passed to Snakemake.",
        usage="plumbline run [STUDY | FILE] [--cores N] [--gpus N] [--slurm] [-- SNAKEMAKE OPTIONS]\n"
        "       plumbline run --list",
    )
    running.add_argument(
        "study",
        nargs="?",
        default=DEFAULT,
        help="name of a study (see --list) or a config file; default: the default study",
    )
    running.add_argument("--list", action="store_true", help="list the studies that come with plumbline, and exit")
    running.add_argument("--cores", type=_at_least(1), metavar="N", help=CORES)
    running.add_argument(
        "--gpus", type=_at_least(0), metavar="N", help="number of GPU jobs at a time, 0 for CPU only; default: all GPUs"
    )
    running.add_argument(
        "--slurm", action="store_true", help="submit the jobs to SLURM with the profile profiles/slurm"
    )
    runs = command(
        "runs",
        "list the valid runs of a study, and the reason for each excluded combination",
        "plumbline runs my.yaml",
    )
    runs.add_argument("config", type=Path, nargs="?", default=Path(DEFAULT), help=STUDY)
    listing = command(
        "list",
        "list the registered objects of one kind, each with a short description",
        "plumbline list measures",
        "plumbline list measures --plugin my_measure.py",
    )
    listing.add_argument(
        "kind",
        type=lambda word: f"{word.removesuffix('s')}s",
        choices=[f"{kind}s" for kind in KINDS],
        help="the kind of objects to list.",
    )
    listing.add_argument(
        "--plugin",
        type=Path,
        metavar="FILE",
        action="append",
        default=[],
        help="Python file whose own objects are listed too; may be repeated",
    )
    checking = command(
        "check",
        "check a config and preview its data, or check Python files with your own objects",
        "plumbline check my.yaml",
        "plumbline check my_measure.py",
        description="Check a config before a run and preview your own data that it names; or check Python files that "
        "declare your own measures, datasets, models, protocols or manipulations.",
    )
    checking.add_argument(
        "file", type=Path, nargs="+", help="config (.yaml), or Python file that declares your own objects"
    )
    checking.add_argument(
        "--raw",
        type=Path,
        metavar="FOLDER",
        default=Path(os.environ.get("PLUMBLINE_DATA") or "raw"),
        help="folder with the original files of datasets; default: the environment variable PLUMBLINE_DATA, else raw",
    )
    checking.add_argument("--traceback", action="store_true", help="print the traceback of each exception")
    new = command(
        "new",
        "write a working template for your own object, and its test",
        "plumbline new measure late-words",
    )
    new.add_argument("kind", choices=[kind for kind in KINDS if kind != "metric"], help="the kind of object.")
    new.add_argument("name", help="its name in configs, such as late-words")
    new.add_argument(
        "--folder", type=Path, default=Path(), help="folder for the two files; default: the working folder"
    )
    _add_plan(command)
    drawing = command(
        "graph",
        "draw the rules of a study as an SVG file; needs graphviz",
        "plumbline graph rules.svg --configfile my.yaml",
    )
    drawing.add_argument("file", type=Path, help="the SVG file to write")
    drawing.add_argument(
        "--packages",
        action="store_true",
        help="draw the Python packages of plumbline and their imports instead; needs a clone, but not graphviz",
    )
    drawing.add_argument("--configfile", type=Path, metavar="FILE", default=Path(DEFAULT), help=STUDY)
    generating = command(
        "generate",
        "regenerate the config schema, the comments in config files and the reference pages, for developers",
        "plumbline generate --check",
    )
    generating.add_argument(
        "--check", action="store_true", help="write nothing; list the files that are out of date and fail if any are"
    )
    generating.add_argument(
        "--project", type=Path, metavar="FOLDER", default=Path(), help="clone of plumbline; default: the working folder"
    )
    _add_merge(command)
    verifying = command(
        "verify",
        "find damaged files in the results of a study and rename them, so that the next run regenerates them",
        "plumbline verify results --list",
    )
    verifying.add_argument("results", type=Path, nargs="?", default=Path("results"), help=RESULTS)
    verifying.add_argument("--list", action="store_true", help="only list the damaged files, and rename none")
    recording = command(
        "record",
        "copy the tables, config and manifest of a finished run to a folder",
        'plumbline record results --into my-paper/sst --note "one H200"',
        "plumbline record --list my-paper",
    )
    recording.add_argument("results", type=Path, nargs="?", default=Path("results"), help=RESULTS)
    what = recording.add_mutually_exclusive_group(required=True)
    what.add_argument("--into", type=Path, metavar="FOLDER", help="folder to write: new, or an earlier recorded run")
    what.add_argument(
        "--list",
        type=Path,
        metavar="FOLDER",
        help="only print the recorded runs in a folder: published results judged and within tolerance, and hours",
    )
    recording.add_argument("--note", default="", help="text for the manifest, such as the hardware; default: none")
    filling = command(
        "fill",
        "write a page whose numbers are read from a recorded run",
        "plumbline fill my-paper/sst/page.md --into my-paper/sst.md",
    )
    filling.add_argument("template", type=Path, help="Jinja template of the page")
    filling.add_argument("--into", type=Path, metavar="FILE", help="file to write; default: print the page")
    filling.add_argument(
        "--run", type=Path, metavar="FOLDER", help="folder of the recorded run; default: the folder of the template"
    )
    watching = command(
        "progress",
        "show the running jobs of a study, from another terminal",
        "plumbline progress results",
    )
    watching.add_argument("results", type=Path, nargs="?", default=Path("results"), help=RESULTS)
    return top


def _add_plan(command: Callable[..., argparse.ArgumentParser]) -> None:
    planning = command(
        "plan",
        "estimate the number of jobs of a study and how long they take",
        "plumbline plan my.yaml --gpus 4 --cores 32",
        "plumbline plan my.yaml --timings other/results",
    )
    planning.add_argument("config", type=Path, nargs="*", help=STUDY)
    planning.add_argument(
        "--configfile",
        type=Path,
        nargs="+",
        metavar="FILE",
        default=[],
        help="config files, as an alternative to the positional argument",
    )
    planning.add_argument(
        "--gpus", type=_at_least(0), metavar="N", help="number of GPUs to plan for; default: those of this machine"
    )
    planning.add_argument(
        "--cores",
        type=_at_least(1),
        metavar="N",
        default=os.cpu_count() or 1,
        help="number of CPU cores to plan for; default: those of this machine",
    )
    planning.add_argument(
        "--timings",
        type=Path,
        nargs="+",
        metavar="PATH",
        default=[],
        help="measured times of other runs: their results folders, recorded runs or files timings.parquet",
    )
    planning.add_argument(
        "--directory",
        type=Path,
        metavar="FOLDER",
        default=Path(),
        help="folder in which the study will run, as for Snakemake; default: the working folder",
    )
    planning.add_argument(
        "--workflow-profile",
        type=Path,
        metavar="FOLDER",
        help="Snakemake profile, such as profiles/slurm; default: profiles/default",
    )
    planning.add_argument(
        "--cut",
        action="store_true",
        help="split jobs that would exceed their requested time, and print the config lines that do so",
    )
    planning.add_argument("--all", action="store_true", help="include jobs that are already done")
    planning.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the plans to this JSON file, with times in seconds"
    )


def _add_merge(command: Callable[..., argparse.ArgumentParser]) -> None:
    merging = command(
        "merge",
        "merge runs of parts of one study into one results folder",
        "plumbline merge node1 node2 --into merged",
        "plumbline merge --list node1",
        usage="plumbline merge RUN RUN ... --into DIR [--partial] [--no-explorer] [--dry-run] [--cores N]\n"
        "       plumbline merge --list RUN [--no-explorer]",
    )
    merging.add_argument("run", type=Path, nargs="+", help="folder in which a part of the study ran, or its results")
    merging.add_argument("--into", type=Path, metavar="DIR", help="new folder for the merged study")
    merging.add_argument(
        "--partial", action="store_true", help="leave out cells that no run has; by default they are an error"
    )
    merging.add_argument(
        "--no-explorer",
        action="store_true",
        help="build the explorer without instances, so that runs need not keep the files for them",
    )
    merging.add_argument(
        "--dry-run", action="store_true", help="check the runs and show what would be copied and computed"
    )
    merging.add_argument("--list", action="store_true", help="only list the files of a run that a merge needs")
    merging.add_argument("--cores", type=_at_least(1), metavar="N", help=CORES)


def _at_least(least: int) -> Callable[[str], int]:
    """The argparse type of a whole number of at least `least`."""

    def parse(text: str) -> int:
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of {least} or more")
        return int(text)

    return parse
