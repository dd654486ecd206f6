"""The packages of the library, drawn as boxes in the order of their import layers."""

import ast
import re
import textwrap
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from plumbline.errors import PlumblineError

WIDTH, MARGIN, LEFT, GAP = 1000, 12, 44, 10  # pixels; LEFT leaves room for the arrow
LINE, CHARACTER = 16, 6.2  # of text, in pixels
STYLE = (
    "text { font: 12px Helvetica, Arial, sans-serif; fill: #222 } .name { font-weight: bold; font-size: 14px } "
    ".imports { fill: #3b6ea5 } rect.package { fill: #f5f7fa; stroke: #8a97a8 } .arrow { stroke: #777; fill: none }"
)
Imports = Mapping[str, set[str]]


def import_layers(settings: Path) -> list[list[str]]:
    """The import layers that `pyproject.toml` declares for import-linter, lowest first."""
    if not settings.is_file():
        raise PlumblineError(
            f"'{settings}', which declares the import layers, is missing; run this command in a clone of plumbline."
        )
    contracts = tomllib.loads(settings.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[name.strip().removeprefix("plumbline.") for name in layer.split("|")] for layer in reversed(layers)]


def _files(library: Path, package: str) -> list[Path]:
    folder = library / package
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def _imported_modules(node: ast.AST) -> Iterable[str]:
    """The modules that some code imports, also inside functions, but not for type checkers alone."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    for child in ast.iter_child_nodes(node):
        yield from _imported_modules(child)


def package_imports(library: Path, packages: Iterable[str]) -> dict[str, set[str]]:
    """Which of the packages each of them imports."""
    packages = list(packages)
    imports = {}
    for package in packages:
        trees = [ast.parse(path.read_text(encoding="utf-8")) for path in _files(library, package)]
        parts = [module.split(".") for tree in trees for module in _imported_modules(tree)]
        imported = {part[1] for part in parts if part[0] == library.name and len(part) > 1}
        imports[package] = imported.intersection(packages) - {package}
    return imports


def without_implied(imports: Imports) -> dict[str, set[str]]:
    """The imports that do not follow from others: a package that an imported one imports in turn is left out."""

    def reached(package: str) -> set[str]:
        return imports[package].union(*map(reached, imports[package]))

    return {package: direct - set().union(*map(reached, direct)) for package, direct in imports.items()}


def rows_of(layers: Sequence[Sequence[str]], imports: Imports) -> list[list[str]]:
    """The layers, lowest first; neighbouring layers that do not import each other share a row."""
    rows: list[list[str]] = []
    for layer in layers:
        if rows and not any(imports[package].intersection(rows[-1]) for package in layer):
            rows[-1] += layer
        else:
            rows.append(list(layer))
    return rows


def summary(library: Path, package: str) -> str:
    """The first sentence of a package's docstring."""
    path = library / package / "__init__.py"
    tree = ast.parse((path if path.is_file() else library / f"{package}.py").read_text(encoding="utf-8"))
    paragraph = (ast.get_docstring(tree) or "").partition("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=\.) ", paragraph)[0]


def as_svg(rows: Sequence[Sequence[str]], imports: Imports, summaries: Mapping[str, str]) -> str:
    """A box for each package with its summary and its imports; the rows, given lowest first, are drawn upwards."""
    boxes: list[str] = []
    top = MARGIN
    for row in reversed(rows):
        width = (WIDTH - LEFT - MARGIN - GAP * (len(row) - 1)) / len(row)
        columns = int((width - 16) / CHARACTER)
        texts = [
            [("name", package)]
            + [("summary", line) for line in textwrap.wrap(summaries[package], columns)]
            + [("imports", line) for line in textwrap.wrap(", ".join(sorted(imports[package])), columns - 2)]
            for package in row
        ]
        height = LINE * max(map(len, texts)) + 14
        for place, lines in enumerate(texts):
            left = LEFT + place * (width + GAP)
            boxes.append(
                f'<rect class="package" x="{left:.1f}" y="{top}" width="{width:.1f}" height="{height}" rx="5"/>'
            )
            first = next((number for number, (kind, _) in enumerate(lines) if kind == "imports"), None)
            for number, (kind, line) in enumerate(lines):
                text = f"↓ {line}" if number == first else line
                y = top + 18 + LINE * number
                boxes.append(f'<text class="{kind}" x="{left + 8:.1f}" y="{y}">{escape(text)}</text>')
        top += height + GAP
    end = top - GAP
    arrow = (
        f'<path class="arrow" d="M 28 {MARGIN} V {end} m -5 -9 l 5 9 l 5 -9"/>'
        f'<text transform="translate(18 {(MARGIN + end) // 2}) rotate(-90)" text-anchor="middle">'
        "a package imports only from rows below its own</text>"
    )
    size = f'width="{WIDTH}" height="{end + MARGIN}" viewBox="0 0 {WIDTH} {end + MARGIN}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<style>{STYLE}</style>'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', arrow, *boxes, "</svg>\n"])


def packages_svg(project: Path) -> str:
    """The drawing of the packages of a clone."""
    layers = import_layers(project / "pyproject.toml")
    library = project / "workflow" / "plumbline"
    packages = [package for layer in layers for package in layer]
    imports = package_imports(library, packages)
    summaries = {package: summary(library, package) for package in packages}
    return as_svg(rows_of(layers, imports), without_implied(imports), summaries)


def draw_packages(project: Path, target: Path) -> None:
    """Write the drawing of the packages of a clone to an SVG file."""
    target.write_text(packages_svg(project), encoding="utf-8")
