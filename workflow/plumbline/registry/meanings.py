"""The meanings of options, read from docstrings when a reader needs them; no job depends on them.

The docstring of a declared function or class ends with a section:

    Options:
        samples: Number of random texts; more are slower and less noisy.

What several objects of the library share is described once, in the docstring of their module or of its package.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from plumbline.registry.declarations import PACKAGE, Declaration

# A name and its text, which may go on in lines that are indented further.
ENTRY = re.compile(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)


def described_options(docstring: str) -> dict[str, str]:
    """The meaning of each option in the last section of a docstring."""
    section = docstring.partition("\nOptions:\n")[2]
    return {name: " ".join(text.split()) for name, text in ENTRY.findall(section)}


def option_meanings(declaration: Declaration) -> dict[str, str]:
    """The meaning of each option that has one; of several, that of the object itself, then of its module."""
    meanings: dict[str, str] = {}
    for docstring in docstrings_of(declaration):
        meanings |= described_options(docstring)
    return {name: meanings[name] for name in declaration.options if name in meanings}


def docstrings_of(declaration: Declaration) -> Iterator[str]:
    """The docstrings of the library's packages around an object, outermost first, of its module, and its own."""
    if declaration.path.is_relative_to(PACKAGE):
        folders = declaration.path.relative_to(PACKAGE).parents
        yield from (_by_name(PACKAGE / folder / "__init__.py").get("", "") for folder in reversed(folders))
    documented = _by_name(declaration.path)
    yield from (documented.get(name, "") for name in ("", declaration.attribute))


@cache
def _by_name(path: Path) -> dict[str, str]:
    """The docstrings of the functions and classes of a file by name; that of the file itself has the name ''."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    definitions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return {name: ast.get_docstring(node) or "" for name, node in {"": tree, **definitions}.items()}
