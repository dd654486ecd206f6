"""The command `plumbline`: what a study runs and costs, what is registered, your own methods, damaged files."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from plumbline.config.external import with_files_located
from plumbline.config.reference import generated
from plumbline.config.resolve import read_config, resolve
from plumbline.config.runs import list_runs
from plumbline.errors import PlumblineError
from plumbline.registry import KINDS, Kind, Registry
from plumbline.runtime.corruption import set_aside
from plumbline.runtime.verify import damaged_files


def show_runs(config: Path) -> None:
    """Print every valid run of a study and the reason for each pair that is left out."""
    resolved = resolve(with_files_located(read_config(config), [Path(), config.parent]))
    runs = list_runs(resolved)
    for cell in [*runs.cells, *runs.adversaries]:
        told = ", ".join(runs.measures.get(cell.model, [])) or "explained by no measure"
        if derived := resolved.derived.get(cell.model):
            reads = "adversary" if derived.adversary else "with the attention"
            told = f"{reads} of {derived.base}, seed {derived.base_seed}"
        print(f"{cell.dataset}  {cell.variant}  {cell.model}  seeds {cell.seeds}: {told}")
    for cell, points in runs.curves.items():
        for unit, strategy in dict.fromkeys((point.unit, point.strategy) for point in points):
            own = [point for point in points if (point.unit, point.strategy) == (unit, strategy)]
            measures = ", ".join(dict.fromkeys(point.measure for point in own))
            levels = ", ".join(str(level) for level in sorted({point.level for point in own} - {0}))
            told = f"masked by {measures} at {levels}"
            print(f"{cell.dataset}  {strategy}, {unit}  {cell.model}  seeds {cell.seeds}: {told}")
    for excluded in runs.excluded:
        print(f"left out: {excluded.reason}")


def show_registered(kind: str, plugins: list[Path]) -> None:
    """Print the registered names of a kind, each with its one-line description."""
    found = [*Registry(plugins).all(kind)]  # type: ignore[arg-type]
    wide = max(len(declaration.name) for declaration in found)
    for declaration in found:
        equation = declaration.facts.get("equation")
        print(f"{declaration.name:{wide}}  {declaration.summary}{f'  [{equation}]' if equation else ''}")
    if kind == "protocol":
        print("\nROAR and adversarial models have keys of their own in a config, `roar` and `adversaries`.")


def show_plans(given: argparse.Namespace) -> None:
    """Print what studies will take, one after the other, and their sum if there are several."""
    # Only here: no other command needs them.
    from plumbline.planning.plan import Machine, plan_study
    from plumbline.planning.show import as_json, as_text, total_sentence
    from plumbline.runtime.gpus import installed_gpus, visible_gpus
    from plumbline.store import write_json

    if given.json and given.json.is_dir():
        raise PlumblineError(f"'{given.json}' is a folder; name a file for the plans.")
    gpus = len(visible_gpus(os.environ, installed_gpus())) if given.gpus is None else given.gpus
    machine = Machine(gpus, given.cores)
    configs = [*given.config, *given.configfile]
    for config in configs:
        read_config(config)
    plans = []
    for config in configs or [None]:
        plans.append(plan_study(config, machine, given.directory, given.timings, given.all, given.workflow_profile))
        print(as_text(plans[-1]), end="\n\n" if len(plans) < len(configs) else "\n")
    if len(plans) > 1:
        print(f"\n{total_sentence(plans)}")
    if given.json:
        write_json(given.json, [as_json(plan) for plan in plans])


def show_checks(files: list[Path], raw: Path, tracebacks: bool) -> int:
    """Print what is wrong with the objects that files declare, as it is found."""
    from tqdm import tqdm

    from plumbline.conformance.checking import check_files

    good = []
    for line, fine in check_files(files, raw, tracebacks):
        # Above a line of progress, if there is one.
        tqdm.write(line)
        good.append(fine)
    return int(not all(good))


def write_template(kind: Kind, name: str, folder: Path) -> None:
    """Write a template of the user's own and say what to do with it."""
    from plumbline.templates.new import next_steps, write_new

    print(next_steps(kind, name, *write_new(kind, name, folder)))


def _counted(least: int) -> Callable[[str], int]:
    """A whole number of at least so much, as an option's value."""

    def counted(text: str) -> int:
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of {least} or more")
        return int(text)

    return counted


def generate(project: Path, check: bool) -> int:
    """Write the generated files, or with `check` only say which of them are out of date."""
    if not (project / "config.yaml").is_file():
        raise PlumblineError(f"'{project}' is not the project's folder: it has no config.yaml; name that by --project.")
    files = generated(project)
    stale = [(path, text) for path, text in files.items() if not path.exists() or path.read_text() != text]
    for path, text in stale:
        print(f"{'out of date' if check else 'written'}: {path.relative_to(project)}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return int(check and bool(stale))


def verify(results: Path, only_list: bool) -> int:
    """Name the damaged files of a study and set them aside."""
    if not results.is_dir():
        raise PlumblineError(f"There is no folder '{results}': name the results of a study.")
    found = list(damaged_files(results))
    for path in found:
        print(f"'{path}' is damaged{'' if only_list else f': set aside as {set_aside(path).name!r}'}.")
    if not found:
        print(f"All tables, tensors and records of '{results}' are whole.")
    else:
        print("Delete them, or run this without --list." if only_list else "Run again, and Snakemake makes them anew.")
    return int(bool(found))


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="plumbline", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("runs", help="list all valid runs of a study, and why others are left out")
    runs.add_argument("config", type=Path, nargs="?", default=Path("config.yaml"), help="by default config.yaml")
    listing = commands.add_parser("list", help="list what is registered")
    listing.add_argument("kind", type=lambda word: f"{word.removesuffix('s')}s", choices=[f"{kind}s" for kind in KINDS])
    listing.add_argument("--plugin", type=Path, action="append", default=[])
    checking = commands.add_parser("check", help="say what is wrong with your own measures, datasets, models, ...")
    checking.add_argument("file", type=Path, nargs="+", help="Python files that declare them")
    checking.add_argument(
        "--raw",
        type=Path,
        default=Path(os.environ.get("PLUMBLINE_DATA") or "raw"),
        help="folder of the publishers' files that datasets read; by default PLUMBLINE_DATA, or raw",
    )
    checking.add_argument("--traceback", action="store_true", help="show where exceptions came from")
    new = commands.add_parser("new", help="write a working file of your own to begin with, and its test")
    new.add_argument("kind", choices=[kind for kind in KINDS if kind != "metric"])
    new.add_argument("name", help="as the config will name it, such as late-words")
    new.add_argument("--folder", type=Path, default=Path(), help="where to write; by default here")
    planning = commands.add_parser("plan", help="say what a study will take: jobs, start-up, hours")
    planning.add_argument(
        "config", type=Path, nargs="*", help="studies, each planned by itself; by default config.yaml"
    )
    planning.add_argument("--configfile", type=Path, nargs="+", default=[], help="the same, as Snakemake's")
    planning.add_argument("--gpus", type=_counted(0), help="GPUs to plan for; by default those of this machine")
    planning.add_argument("--cores", type=_counted(1), default=os.cpu_count() or 1, help="likewise cores")
    planning.add_argument(
        "--timings", type=Path, nargs="+", default=[], help="timings.parquet, or results, of other runs"
    )
    planning.add_argument("--directory", type=Path, default=Path(), help="the working folder, as Snakemake's")
    planning.add_argument("--workflow-profile", type=Path, help="as Snakemake's, such as profiles/slurm")
    planning.add_argument("--all", action="store_true", help="count what is done already, too")
    planning.add_argument("--json", type=Path, help="also write the plans, a list, to this file; in seconds")
    drawing = commands.add_parser("graph", help="draw the rules of a study; needs graphviz")
    drawing.add_argument("file", type=Path, help="the SVG file to write")
    drawing.add_argument("--configfile", type=Path, help="a study, as Snakemake's; by default config.yaml")
    generating = commands.add_parser(
        "generate", help="write the schema, the reference page and the comments of configs"
    )
    generating.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    generating.add_argument("--project", type=Path, default=Path())
    verifying = commands.add_parser("verify", help="find files of a study that were cut off, and set them aside")
    verifying.add_argument("results", type=Path, nargs="?", default=Path("results"), help="by default results")
    verifying.add_argument("--list", action="store_true", help="name them only")
    watching = commands.add_parser("progress", help="show the running jobs of a study, from another terminal")
    watching.add_argument("results", type=Path, nargs="?", default=Path("results"), help="by default results")
    given = parser.parse_args(arguments)
    try:
        if given.command == "runs":
            show_runs(given.config)
        elif given.command == "list":
            show_registered(given.kind.removesuffix("s"), given.plugin)
        elif given.command == "check":
            return show_checks(given.file, given.raw, given.traceback)
        elif given.command == "new":
            write_template(given.kind, given.name, given.folder)
        elif given.command == "verify":
            return verify(given.results, given.list)
        elif given.command == "progress":
            from plumbline.runtime.display import watch

            watch(given.results)
        elif given.command == "plan":
            show_plans(given)
        elif given.command == "graph":
            from plumbline.planning.graph import draw_rules

            draw_rules(given.configfile, given.file)
        else:
            return generate(given.project, given.check)
    except PlumblineError as error:
        print(f"plumbline: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
