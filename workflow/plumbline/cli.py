"""The command `plumbline`: run and plan studies, list registered objects, check your own methods, find damaged files.

Commands import what they need when they run, so that `--help` and `--version` answer at once.
"""

import argparse
import os
import sys
from itertools import chain
from pathlib import Path

from plumbline.arguments import parser
from plumbline.errors import PlumblineError
from plumbline.project import DEFAULT, current_project, find_study
from plumbline.registry import Kind, Registry


def show_runs(study: Path) -> None:
    """Print every valid run of a study, the reason for each excluded combination and what the scorecard will lack."""
    from plumbline.config.external import locate_files
    from plumbline.config.resolve import read_config, resolve
    from plumbline.config.runs import list_runs, scorecard_gaps

    config = find_study(study)
    resolved = resolve(locate_files(read_config(config), [Path(), config.parent]))
    runs = list_runs(resolved)
    for cell in [*runs.cells, *runs.adversaries]:
        description = ", ".join(runs.measures.get(cell.model, [])) or "explained by no measure"
        if derived := resolved.derived.get(cell.model):
            relation = "adversary" if derived.adversary else "with the attention"
            description = f"{relation} of {derived.base}, seed {derived.base_seed}"
        print(f"{cell.dataset}  {cell.variant}  {cell.model}  seeds {cell.seeds}: {description}")
    for cell, points in runs.curves.items():
        for unit, strategy in dict.fromkeys((point.unit, point.strategy) for point in points):
            curve = [point for point in points if (point.unit, point.strategy) == (unit, strategy)]
            measures = ", ".join(dict.fromkeys(point.measure for point in curve))
            levels = ", ".join(str(level) for level in sorted({point.level for point in curve} - {0}))
            description = f"masked by {measures} at {levels}"
            print(f"{cell.dataset}  {strategy}, {unit}  {cell.model}  seeds {cell.seeds}: {description}")
    for excluded in runs.excluded:
        print(f"left out: {excluded.reason}")
    for gap in scorecard_gaps(resolved, runs):
        print(f"warning: {gap}")


def show_registered(kind: str, plugins: list[Path]) -> None:
    """Print the registered names of a kind, each with its one-line description."""
    declarations = Registry(plugins).all(kind)  # type: ignore[arg-type]
    width = max(len(declaration.name) for declaration in declarations)
    for declaration in declarations:
        equation = declaration.facts.get("equation")
        print(f"{declaration.name:{width}}  {declaration.summary}{f'  [{equation}]' if equation else ''}")
    if kind == "protocol":
        print("\nROAR and adversarial models have their own keys in a config, `roar` and `adversaries`.")


def show_plans(options: argparse.Namespace) -> None:
    """Print the plan of each study, and their sum if there are several."""
    from plumbline.config.resolve import read_config
    from plumbline.planning.plan import Machine, plan_study
    from plumbline.planning.show import as_json, as_text, total_sentence
    from plumbline.runtime.gpus import installed_gpus, visible_gpus
    from plumbline.store import write_json

    if options.json and options.json.is_dir():
        raise PlumblineError(f"`--json` is '{options.json}', a folder; give the name of a file.")
    gpus = len(visible_gpus(os.environ, installed_gpus())) if options.gpus is None else options.gpus
    machine = Machine(gpus, options.cores)
    configs = [find_study(study) for study in (*options.config, *options.configfile) or (DEFAULT,)]
    for config in configs:
        read_config(config)
    plans = []
    for config in configs:
        plans.append(
            plan_study(
                config,
                machine,
                options.directory,
                options.timings,
                options.all,
                options.workflow_profile,
                options.cut,
            )
        )
        print(as_text(plans[-1]), end="\n\n" if len(plans) < len(configs) else "\n")
    if len(plans) > 1:
        print(f"\n{total_sentence(plans)}")
    if options.json:
        write_json(options.json, [as_json(plan) for plan in plans])


def show_checks(files: list[Path], raw: Path, tracebacks: bool) -> int:
    """Print the faults of the objects that files declare as they are found, and previews of the data of configs."""
    from tqdm import tqdm

    from plumbline.conformance.checking import check_files
    from plumbline.conformance.preview import preview_studies

    configs = [file for file in files if file.suffix in (".yaml", ".yml")]
    all_passed = True
    checks = check_files([file for file in files if file not in configs], raw, tracebacks)
    for line, passed in chain(preview_studies(configs, raw), checks):
        # Above the progress bar, if there is one.
        tqdm.write(line)
        all_passed &= passed
    return int(not all_passed)


def write_template(kind: Kind, name: str, folder: Path) -> None:
    """Write a template under a new name and print what to do with it."""
    from plumbline.templates.new import next_steps, write_new

    print(next_steps(kind, name, *write_new(kind, name, folder)))


def generate(project: Path, check: bool) -> int:
    """Write the generated files, or with `check` only list those that are out of date."""
    from plumbline.config.annotations import generated_files
    from plumbline.manual import reference_pages

    if not (project / "config.yaml").is_file():
        raise PlumblineError(f"'{project}' is not a clone of plumbline: it has no config.yaml; set --project.")
    files = generated_files(project) | reference_pages(project)
    stale = [(path, text) for path, text in files.items() if not path.exists() or path.read_text() != text]
    for path, text in stale:
        print(f"{'out of date' if check else 'written'}: {path.relative_to(project)}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return int(check and bool(stale))


def verify(results: Path, only_list: bool) -> int:
    """List the damaged files of a study and set them aside."""
    from plumbline.runtime.corruption import set_aside
    from plumbline.runtime.verify import damaged_files

    if not results.is_dir():
        raise PlumblineError(f"There is no folder '{results}'; give the results folder of a study.")
    files = list(damaged_files(results))
    for path in files:
        print(f"'{path}' is damaged{'' if only_list else f': set aside as {set_aside(path).name!r}'}.")
    if not files:
        print(f"All tables, tensors and records of '{results}' are intact.")
    else:
        print(
            ("Run the command without --list to rename them, so that the next run regenerates them.")
            if only_list
            else ("Run the study again; Snakemake regenerates them.")
        )
    return int(bool(files))


def record(results: Path, folder: Path, note: str) -> None:
    """Keep the tables, config and manifest of a finished run."""
    from plumbline.record import record_run

    files = record_run(results, folder, note)
    size = sum(file.stat().st_size for file in files) / 1e3
    print(
        f"{len(files)} files, {size:,.0f} kB, are in '{folder}'. `plumbline fill TEMPLATE` writes a page with their "
        "numbers."
    )


def fill(template: Path, into: Path | None, run: Path | None) -> None:
    """Write a page with numbers of a recorded run."""
    from plumbline.pages import fill_page, write_page

    if not template.is_file():
        raise PlumblineError(f"There is no template '{template}'; give an existing file.")
    page = fill_page(template, run, into)
    if into is None:
        print(page, end="")
    else:
        write_page(page, into)


def run(options: argparse.Namespace) -> None:
    """Run a study, or list the studies."""
    from plumbline.launch import Launch, list_studies, run_study

    if options.list:
        print(list_studies())
    else:
        run_study(Launch(options.study, options.cores, options.gpus, options.slurm, options.snakemake))


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    given = sys.argv[1:] if arguments is None else arguments
    # What follows `--` is for Snakemake.
    end = given.index("--") if given[:1] == ["run"] and "--" in given else len(given)
    options = parser().parse_args(given[:end])
    options.snakemake = given[end + 1 :]
    try:
        if options.command == "run":
            run(options)
        elif options.command == "runs":
            show_runs(options.config)
        elif options.command == "list":
            show_registered(options.kind.removesuffix("s"), options.plugin)
        elif options.command == "check":
            return show_checks(options.file, options.raw, options.traceback)
        elif options.command == "new":
            write_template(options.kind, options.name, options.folder)
        elif options.command == "merge":
            from plumbline.merge.command import merge

            return merge(options)
        elif options.command == "verify":
            return verify(options.results, options.list)
        elif options.command == "record":
            if options.list:
                from plumbline.record import overview

                print(overview(options.list))
            else:
                record(options.results, options.into, options.note)
        elif options.command == "fill":
            fill(options.template, options.into, options.run)
        elif options.command == "progress":
            from plumbline.runtime.display import watch

            watch(options.results)
        elif options.command == "plan":
            show_plans(options)
        elif options.command == "graph":
            from plumbline.planning.graph import draw_rules
            from plumbline.planning.packages import draw_packages

            if options.packages:
                draw_packages(current_project(), options.file)
            else:
                draw_rules(find_study(options.configfile), options.file)
        else:
            return generate(options.project, options.check)
    except PlumblineError as error:
        print(f"plumbline: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
