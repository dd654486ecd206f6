"""What the scripts of rules import before they begin: a job pays for it each time it starts."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from plumbline.registry import Registry
from plumbline.runtime.provenance import module_file

SCRIPTS = sorted((Path(__file__).parents[2] / "workflow" / "scripts").glob("*.py"))
HEAVY = {"torch", "transformers", "spacy", "seaborn", "captum", "sklearn", "gensim"}
SLOW = HEAVY | {"numpy", "pandas", "pyarrow", "pydantic", "snakemake", "yaml"}
# Everything that trains or asks models, and everything that draws.
MODELS = {"train", "extract_attention", "attribute", "trace"}


def top_level(statements: list[ast.stmt]) -> Iterator[str]:
    """The modules that are imported when a file is, without what is imported within functions or for types alone."""
    for node in statements:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
        elif not isinstance(node, ast.FunctionDef | ast.If):
            yield from top_level(getattr(node, "body", []))


@cache
def imported(path: Path) -> frozenset[str]:
    return frozenset(top_level(ast.parse(path.read_text(encoding="utf-8")).body))


def heavy(script: Path) -> set[str]:
    """The slow packages that a script imports before it begins, directly or not."""
    seen, pending, found = set(), [script], set()
    while pending:
        path = pending.pop()
        if path not in seen:
            seen.add(path)
            found |= {module.partition(".")[0] for module in imported(path)} & HEAVY
            pending += [file for module in imported(path) if (file := module_file(module))]
    return found


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_job_imports_no_slow_package_that_it_does_not_use(script):
    expected = {"torch"} if script.stem in MODELS else {"seaborn"} if script.stem == "figures" else set()
    assert heavy(script) == expected


@pytest.mark.parametrize("kind", ["table", "criterion", "page"])
def test_tables_criteria_and_pages_import_no_slow_package(kind):
    """Their jobs import the files that declare them."""
    assert [one.name for one in Registry().all(kind) if heavy(one.path)] == []


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_command_answers_before_it_imports_anything_slow(option):
    code = "import sys\nfrom plumbline.cli import main\ntry:\n    main(sys.argv[1:])\nfinally:\n    print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, option], text=True, capture_output=True, check=True)
    assert "plumbline" in done.stdout.splitlines()[0]
    assert not SLOW & set(done.stdout.splitlines()[-1].split())


def test_importing_the_package_imports_nothing_slow_until_the_api_is_used():
    code = "import sys, plumbline\nprint(*sys.modules)\nplumbline.load\nprint('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    modules, loaded = done.stdout.splitlines()
    assert not SLOW & set(modules.split()) and loaded == "True"
