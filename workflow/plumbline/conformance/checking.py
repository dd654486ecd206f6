"""What is wrong with a user's own files, in plain words: how they are written, then how what they declare behaves.

Nothing heavy is imported before a file reads well, so that most slips are told at once.
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

EXAMPLE = 'put, for example, @measure("my-measure", equation="...") from plumbline.registry above a function'


def check_files(paths: Iterable[Path], raw: Path, tracebacks: bool = False) -> Iterator[tuple[str, bool]]:
    """Lines about every object that the files declare, each with whether it is good."""
    plugins: list[Path] = []
    declared: list[Declaration] = []
    for path in {path.resolve(): path for path in paths}.values():
        try:
            found = _read(path, declared)
        except PlumblineError as error:
            yield str(error), False
            continue
        plugins.append(path)
        declared += found
    if not declared:
        return
    if tracebacks:
        _show_tracebacks()
    registry = Registry(plugins)
    failed = {path: told for path in plugins if (told := _imported(next(d for d in declared if d.path == path)))}
    yield from ((told, False) for told in failed.values())
    with tqdm(total=len(declared), unit="object", leave=False, disable=None) as progress:
        for declaration in declared:
            progress.set_description_str(f"{declaration.kind} {declaration.name}")
            if declaration.path not in failed:
                yield from _examined(declaration, registry, raw)
            progress.update()


def _read(path: Path, others: Sequence[Declaration]) -> list[Declaration]:
    """The declarations of a file; one that cannot be read, or declares nothing, or what is taken, is refused."""
    if path.is_dir():
        raise PlumblineError(f"'{path}' is a folder; name the Python file of your method.")
    if path.exists() and path.suffix != ".py":
        raise PlumblineError(f"'{path}' is no Python file; its name must end in '.py'.")
    declared = list(declarations_in(path))
    misplaced = _misplaced(ast.parse(path.read_text(encoding="utf-8")), path)
    if misplaced:
        raise PlumblineError(misplaced)
    if not declared:
        raise PlumblineError(f"'{path}' declares nothing; {EXAMPLE}.")
    known = {(one.kind, one.name): one for kind in (*KINDS, *PARTS) for one in Registry().all(kind)}
    known |= {(one.kind, one.name): one for one in others}
    for one in declared:
        if other := known.get((one.kind, one.name)):
            whose = "plumbline's own" if other not in others else f"that of '{other.path.name}'"
            if other.path == path:
                whose = "declared twice in this file"
            raise PlumblineError(f"'{path}': the name of the {one.kind} '{one.name}' is {whose}; choose another.")
        known[one.kind, one.name] = one
    return declared


def _misplaced(tree: ast.Module, path: Path) -> str | None:
    """A declaration that would go unseen: without a name, not at the top of the file, or of a name defined again."""
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "plumbline.registry"
        for alias in node.names
    } & {*KINDS, *PARTS}
    marked: list[str] = []
    for node in ast.walk(tree):
        for mark in getattr(node, "decorator_list", []):
            called = mark.func if isinstance(mark, ast.Call) else mark
            if not isinstance(called, ast.Name) or called.id not in imported:
                continue
            where = f"{path.name}, line {mark.lineno}: @{called.id}"
            if called is mark:
                return f'{where} needs a name, such as @{called.id}("my-{called.id}").'
            if node not in tree.body:
                return f"{where} stands inside something else; declare at the top level of the file."
            marked.append(getattr(node, "name", ""))
    defined = Counter(getattr(node, "name", "") for node in tree.body)
    twice = [name for name in marked if defined[name] > 1]
    return f"{path.name}: '{twice[0]}' is defined twice, and only the last one counts; rename one." if twice else None


def _imported(declaration: Declaration) -> str | None:
    """What goes wrong when a file is imported."""
    # Only here, because it takes seconds.
    from plumbline.conformance import failure

    try:
        load(declaration.pointer)
    except (Exception, SystemExit) as error:
        told = failure(error, declaration.path).removeprefix("it fails with ").removesuffix(".")
        remedy = "; install that package, or correct its name" if isinstance(error, ModuleNotFoundError) else ""
        return f"'{declaration.path}' cannot be imported: {told}{remedy}."
    return None


def _examined(declaration: Declaration, registry: Registry, raw: Path) -> Iterator[tuple[str, bool]]:
    from plumbline.conformance import Note, Tried, Untried, examine

    started = time.perf_counter()
    told = examine(declaration.kind, declaration.name, registry, raw)
    faults = [fault for fault in told if not isinstance(fault, Note)]
    whose = f"{declaration.kind} {declaration.name}"
    yield from ((f"{whose}: {fault}", False) for fault in faults)
    if not faults:
        tried = [*(note for note in told if isinstance(note, Tried)), f"{time.perf_counter() - started:.1f} s"]
        beside = "".join(f"; {note}" for note in told if isinstance(note, Untried))
        yield f"{whose}: conforms{' so far' if beside else ''} ({', '.join(tried)}){beside}", True


def _show_tracebacks() -> None:
    """Print the traceback of every exception that becomes a sentence, once."""
    seen: set[str] = set()

    def new(record: logging.LogRecord) -> bool:
        told = record.getMessage()
        return not (told in seen or seen.add(told))  # type: ignore[func-returns-value]

    handler = logging.StreamHandler()
    handler.addFilter(new)
    logger = logging.getLogger("plumbline.conformance")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
