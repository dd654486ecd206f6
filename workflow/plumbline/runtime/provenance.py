"""One hash of all code that a job can reach, so that Snakemake reruns only what an edit affects.

Snakemake does not track imported modules. Each rule has in `params` the hash of the syntax trees of its script, of the
registered objects it uses and of every plumbline module, or file next to a plug-in, that these import, directly or
indirectly. Comments, white space, docstrings, descriptions of options and declarations, code under `TYPE_CHECKING`, the
version number and the reporting of progress are not part of the hash.
"""

import ast
import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from plumbline.registry import DESCRIPTION, PACKAGE

# No result depends on this module.
PROGRESS = PACKAGE / "runtime" / "progress.py"
# Arguments of options and declarations that only describe them. Docstrings and titles reach the report in its params.
DESCRIPTIVE = {
    "Field": {"description", "title", "examples"},
    "dataset": {"summary", "source", "licence"},
    "manipulation": {"summary", "equation", "citation"},
    "model": {"summary", "citation"},
    "measure": {"summary", *DESCRIPTION},
    "protocol": {*DESCRIPTION, "metrics"},
    "table": {*DESCRIPTION, "metrics"},
    "metric": {"equation", "unit"},
    "figure": {"experiment", "page", "order"},
    "page": {"title", "group", "order"},
}
# Nodes with a docstring, and redundant fields of nodes: the context of a name follows from its position, and type
# comments are comments.
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
REDUNDANT = {"ctx", "kind", "type_comment", "type_ignores"}


def _called(call: ast.Call) -> str:
    """The name of the called function."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_without_meaning(node: object) -> bool:
    """Whether a statement is for type checkers, or states the version of plumbline, which every record of a job has."""
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == "__version__" for target in node.targets)
    return isinstance(node, ast.If) and "TYPE_CHECKING" in (
        getattr(node.test, "id", ""),
        getattr(node.test, "attr", ""),
    )


def _meaning(node: ast.AST, field: str) -> Any:
    """The value of a node's field, without docstrings, descriptions and code for type checkers."""
    value = getattr(node, field, None)
    if field == "body" and isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        value = node.body[1:]
    if field in ("body", "orelse") and isinstance(value, list):
        return [part for part in value if not _is_without_meaning(part)]
    if field == "values" and isinstance(node, ast.JoinedStr):
        # Python 3.12 ends some format specifications with an empty string.
        return [part for part in value or [] if not (isinstance(part, ast.Constant) and part.value == "")]
    if field == "keywords" and isinstance(node, ast.Call):
        descriptive = DESCRIPTIVE.get(_called(node), ())
        return [keyword for keyword in value or [] if keyword.arg not in descriptive]
    return value


def _read_tree(node: object, write: Callable[[str], object], imported: set[str]) -> None:
    """Write the meaning of a syntax tree and collect its imports, in one pass, as every job's parse waits for it."""
    if isinstance(node, list):
        write("[")
        for item in node:
            _read_tree(item, write, imported)
        write("]")
    elif isinstance(node, ast.AST):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
        write(f"({type(node).__name__}")
        for field in node._fields:
            value = _meaning(node, field)
            # Newer versions of Python have more fields, which are empty in code that does not use them.
            if field not in REDUNDANT and (value not in (None, []) or isinstance(node, ast.Constant)):
                write(field)
                _read_tree(value, write, imported)
        write(")")
    else:
        write(repr(node))


def module_file(module: str) -> Path | None:
    """The file of a plumbline module, or None for anything else."""
    if not module.startswith("plumbline"):
        return None
    path = PACKAGE.parent.joinpath(*module.split("."))
    return next((p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()), None)


@cache
def _read(path: Path) -> tuple[str, frozenset[Path]]:
    """A file's hash and the plumbline files that it imports, also inside functions."""
    written: list[str] = []
    imported: set[str] = set()
    _read_tree(ast.parse(path.read_text(encoding="utf-8")), written.append, imported)
    files = {file for module in imported if (file := module_file(module))}
    if not path.is_relative_to(PACKAGE.parent):
        # Files next to a plug-in.
        siblings = {path.parent.joinpath(*module.split(".")).with_suffix(".py") for module in imported}
        files |= {file.resolve() for file in siblings if file.is_file()}
    return hashlib.sha256(" ".join(written).encode()).hexdigest(), frozenset(files)


def reachable(*roots: Path) -> set[Path]:
    """All files that the roots reach by imports, including the roots."""
    files: set[Path] = set()
    pending = [root.resolve() for root in roots]
    while pending:
        path = pending.pop()
        if path not in files:
            files.add(path)
            pending += _read(path)[1]
    return files


def text_hash(folder: Path, *patterns: str) -> str:
    """A short hash of text files such as rules and templates, independent of the folder's path."""
    paths = sorted(path for pattern in patterns for path in folder.glob(pattern))
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


@cache
def code_hash(*roots: Path) -> str:
    """A short hash of all code that the roots reach, independent of the project's path."""
    digests = sorted(_read(path)[0] for path in reachable(*roots) if path != PROGRESS)
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:16]


def content_hash(*paths: str) -> str:
    """A short hash of data: the bytes of files and, of folders, the names and bytes of the files in them that are not
    hidden. Missing files, which a plan may have, have no bytes."""
    digest = hashlib.sha256()
    for path in map(Path, paths):
        for file in sorted(_visible_files(path)) if path.is_dir() else [path]:
            digest.update(f"{file.relative_to(path)}\0".encode())
            if file.is_file():
                with file.open("rb") as opened:
                    digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()[:16]


def _visible_files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path
