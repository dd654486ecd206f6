"""The command `plumbline`: what a study would run, what is registered, and the generated files."""

import argparse
import sys
from pathlib import Path

from plumbline.config.reference import generated
from plumbline.config.runs import list_runs
from plumbline.config.study import read_config, resolve, with_plugins_located
from plumbline.errors import PlumblineError
from plumbline.registry import KINDS, Registry


def show_runs(config: Path) -> None:
    """Print every valid run of a study and the reason for each pair that is left out."""
    resolved = resolve(with_plugins_located(read_config(config), [Path(), config.parent]))
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
    for declaration in Registry(plugins).all(kind):  # type: ignore[arg-type]
        equation = declaration.facts.get("equation")
        print(f"{declaration.name:22} {declaration.summary}{f'  [{equation}]' if equation else ''}")


def generate(project: Path, check: bool) -> int:
    """Write the generated files, or with `check` only say which of them are out of date."""
    stale = [(path, text) for path, text in generated(project).items() if not path.exists() or path.read_text() != text]
    for path, text in stale:
        print(f"{'out of date' if check else 'written'}: {path.relative_to(project)}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return int(check and bool(stale))


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="plumbline", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("runs", help="list all valid runs of a study, and why others are left out")
    runs.add_argument("config", type=Path, nargs="?", default=Path("config.yaml"))
    listing = commands.add_parser("list", help="list what is registered")
    listing.add_argument("kind", choices=[f"{kind}s" for kind in KINDS])
    listing.add_argument("--plugin", type=Path, action="append", default=[])
    generating = commands.add_parser(
        "generate", help="write the schema, the reference page and the comments of configs"
    )
    generating.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    generating.add_argument("--project", type=Path, default=Path())
    given = parser.parse_args(arguments)
    try:
        if given.command == "runs":
            show_runs(given.config)
        elif given.command == "list":
            show_registered(given.kind.removesuffix("s"), given.plugin)
        else:
            return generate(given.project, given.check)
    except PlumblineError as error:
        print(f"plumbline: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
