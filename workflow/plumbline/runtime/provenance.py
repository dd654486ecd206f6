"""Which code a job can reach, as one hash, so that Snakemake reruns what an edit changed and nothing else.

Snakemake does not see imported modules. Each rule carries in `params` the hash of the syntax trees of its script, of
the registered objects it uses and of every plumbline module, or file beside a plug-in, that these import, directly or
not. The hash is of meaning: comments, white space, docstrings, words that describe an option or a declaration, and what
stands under `TYPE_CHECKING` are not part of it, and neither is what only shows how far a job is.
"""

import ast
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from plumbline.registry import PACKAGE

# No result depends on it.
SHOWN = PACKAGE / "runtime" / "progress.py"


# Arguments that say something to people alone: of an option of the config, and of a declaration. Captions and titles
# reach the report through its params.
WORDS = {
    "Field": {"description", "title", "examples"},
    "dataset": {"source", "licence"},
    "manipulation": {"equation"},
    "measure": {"equation"},
    "protocol": {"equation"},
    "metric": {"equation", "unit"},
    "figure": {"caption", "experiment", "page", "order"},
    "page": {"title", "about", "group", "order"},
}


# What has a docstring, and fields of nodes that say nothing more than the rest: how a name is used follows from where
# it stands, and comments on types are comments.
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
SILENT = {"ctx", "kind", "type_comment", "type_ignores"}


def _is_docstring(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _called(call: ast.Call) -> str:
    """The name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_type_checking(node: object) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in (
        getattr(node.test, "id", ""),
        getattr(node.test, "attr", ""),
    )


def _meaning(node: ast.AST, field: str) -> Any:
    """What a field of a node holds, without what says something to people or to type checkers alone."""
    value = getattr(node, field, None)
    if field == "body" and isinstance(node, DOCUMENTED) and value and _is_docstring(value[0]):
        value = value[1:]
    if field in ("body", "orelse") and isinstance(value, list):
        return [part for part in value if not _is_type_checking(part)]
    if field == "keywords" and isinstance(node, ast.Call):
        words = WORDS.get(_called(node), ())
        return [keyword for keyword in value or [] if keyword.arg not in words]
    return value


def _read_tree(node: object, write: Callable[[str], object], imported: set[str]) -> None:
    """Write the meaning of a syntax tree, and note what it imports. One pass, as every job's parse waits for it."""
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
            if field not in SILENT:
                _read_tree(_meaning(node, field), write, imported)
        write(")")
    else:
        write(repr(node))


def module_file(module: str) -> Path | None:
    """The file of a plumbline module, or None for anything else."""
    place = PACKAGE.parent.joinpath(*module.split("."))
    if not module.startswith("plumbline"):
        return None
    return next((p for p in (place.with_suffix(".py"), place / "__init__.py") if p.is_file()), None)


@cache
def _read(path: Path) -> tuple[str, frozenset[Path]]:
    """A file's hash and the plumbline files that it imports, at any depth of its code."""
    written: list[str] = []
    imported: set[str] = set()
    _read_tree(ast.parse(path.read_text(encoding="utf-8")), written.append, imported)
    files = {file for module in imported if (file := module_file(module))}
    if not path.is_relative_to(PACKAGE.parent):
        # What a plug-in imports from beside it.
        beside = {path.parent.joinpath(*module.split(".")).with_suffix(".py") for module in imported}
        files |= {file.resolve() for file in beside if file.is_file()}
    return hashlib.sha256(" ".join(written).encode()).hexdigest(), frozenset(files)


def reachable(*roots: Path) -> set[Path]:
    """All files that the roots can reach by imports, the roots included."""
    found: set[Path] = set()
    pending = [root.resolve() for root in roots]
    while pending:
        path = pending.pop()
        if path not in found:
            found.add(path)
            pending += _read(path)[1]
    return found


def text_hash(folder: Path, *patterns: str) -> str:
    """One short hash of the text of files that are no Python: rules, templates. The folder's place does not count."""
    paths = sorted(path for pattern in patterns for path in folder.glob(pattern))
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


@cache
def code_hash(*roots: Path) -> str:
    """One short hash of everything that the roots can reach. It does not depend on where the project lies."""
    digests = sorted(_read(path)[0] for path in reachable(*roots) if path != SHOWN)
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:16]
