"""Checks of a user's own files: first their declarations, then the behaviour of the declared objects.

Slow packages are imported after the first, so that most mistakes are reported at once.
"""

import ast
import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tqdm import tqdm

from plumbline.errors import PlumblineError
from plumbline.registry import KINDS, PARTS, Declaration, Registry, declarations_in, load

EXAMPLE = 'for example, put @measure("my-measure", equation="...") from plumbline.registry above a function'


def check_files(paths: Iterable[Path], raw: Path, tracebacks: bool = False) -> Iterator[tuple[str, bool]]:
    """Lines about every object that the files declare, each with whether it is free of faults."""
    plugins: list[Path] = []
    declared: list[Declaration] = []
    for path in {path.resolve(): path for path in paths}.values():
        try:
            declarations = _read(path, declared)
        except PlumblineError as error:
            yield str(error), False
            continue
        plugins.append(path)
        declared += declarations
    if not declared:
        return
    if tracebacks:
        _show_tracebacks()
    registry = Registry(plugins)
    failed = {path: fault for path in plugins if (fault := _import(next(d for d in declared if d.path == path)))}
    yield from ((fault, False) for fault in failed.values())
    with tqdm(total=len(declared), unit="object", leave=False, disable=None) as progress:
        for declaration in declared:
            progress.set_description_str(f"{declaration.kind} {declaration.name}")
            if declaration.path not in failed:
                yield from _report(declaration, registry, raw)
            progress.update()


def _read(path: Path, others: Sequence[Declaration]) -> list[Declaration]:
    """The declarations of a file; an unreadable file, one without declarations and a taken name are refused."""
    if path.is_dir():
        raise PlumblineError(f"'{path}' is a folder; give the Python file of your method.")
    if path.exists() and path.suffix != ".py":
        raise PlumblineError(f"'{path}' is not a Python file; its name must end in '.py', or in '.yaml' for a config.")
    declared = list(declarations_in(path))
    if misplaced := _misplaced(ast.parse(path.read_text(encoding="utf-8")), path):
        raise PlumblineError(misplaced)
    if not declared:
        raise PlumblineError(f"'{path}' declares nothing; {EXAMPLE}.")
    library = [declaration for kind in (*KINDS, *PARTS) for declaration in Registry().all(kind)]
    owners = {(declaration.kind, declaration.name): "plumbline" for declaration in library}
    owners |= {(declaration.kind, declaration.name): f"'{declaration.path.name}'" for declaration in others}
    for declaration in declared:
        key = declaration.kind, declaration.name
        if key in owners:
            raise PlumblineError(f"'{path}': {owners[key]} already has the {key[0]} '{key[1]}'; choose another name.")
        owners[key] = "this file"
    return declared


def _misplaced(tree: ast.Module, path: Path) -> str | None:
    """A declaration that would be ignored: without a name, not at the top level, or of a function defined again."""
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "plumbline.registry"
        for alias in node.names
    } & {*KINDS, *PARTS}
    declared: list[str] = []
    for node in ast.walk(tree):
        for decorator in getattr(node, "decorator_list", []):
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if not isinstance(called, ast.Name) or called.id not in imported:
                continue
            where = f"{path.name}, line {decorator.lineno}: @{called.id}"
            if called is decorator:
                return f'{where} needs a name, such as @{called.id}("my-{called.id}").'
            if node not in tree.body:
                return f"{where} is nested; declare it at the top level of the file."
            declared.append(getattr(node, "name", ""))
    definitions = Counter(getattr(node, "name", "") for node in tree.body)
    twice = [name for name in declared if definitions[name] > 1]
    return f"{path.name}: '{twice[0]}' is defined twice, and only the last one counts; rename one." if twice else None


def _import(declaration: Declaration) -> str | None:
    """Import the file of a declaration and return what goes wrong."""
    # Not at the top, because it takes seconds.
    from plumbline.conformance.notes import failure

    try:
        load(declaration.pointer)
    except (Exception, SystemExit) as error:
        cause = failure(error, declaration.path).removeprefix("it fails with ").removesuffix(".")
        remedy = "; install that package, or correct its name" if isinstance(error, ModuleNotFoundError) else ""
        return f"'{declaration.path}' cannot be imported: {cause}{remedy}."
    return None


def _report(declaration: Declaration, registry: Registry, raw: Path) -> Iterator[tuple[str, bool]]:
    from plumbline.conformance.notes import Checked, Note, Unchecked
    from plumbline.conformance.run import examine

    started = time.perf_counter()
    results = examine(declaration.kind, declaration.name, registry, raw)
    faults = [result for result in results if not isinstance(result, Note)]
    subject = f"{declaration.kind} {declaration.name}"
    yield from ((f"{subject}: {fault}", False) for fault in faults)
    if not faults:
        checked = [*(note for note in results if isinstance(note, Checked)), f"{time.perf_counter() - started:.1f} s"]
        unchecked = "".join(f"; {note}" for note in results if isinstance(note, Unchecked))
        yield f"{subject}: conforms{' so far' if unchecked else ''} ({', '.join(checked)}){unchecked}", True


def _show_tracebacks() -> None:
    """Print the traceback of every exception that is reported as a sentence, once."""
    seen: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        message = record.getMessage()
        return not (message in seen or seen.add(message))  # type: ignore[func-returns-value]

    handler = logging.StreamHandler()
    handler.addFilter(is_new)
    logger = logging.getLogger("plumbline.conformance")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
