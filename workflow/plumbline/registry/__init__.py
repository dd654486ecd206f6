"""Plug-ins by name, each declared by a decorator.

They are datasets, manipulations, models, measures, protocols and metrics, and the parts of the report: tables, figures,
pages and criteria of the scorecard.

Declarations are read from the syntax tree, never by importing, because every job rereads the config and must not pay
for torch or spaCy. So a decorator takes literals only, and the keyword-only arguments of the decorated function (or of
the decorated class's ``__init__``) are the options that the config may set: their annotations are the types that are
checked and their defaults the defaults. A dataclass among the arguments of a function stands for its fields. The object
itself is imported by `load`, in the job that needs it.

    @measure("gradient-attached", needs=["gradient"], attention="attached")
    @measure("gradient", needs=["gradient", "attention"])
    def gradient(evaluator, instances, *, attention: Literal["detached", "attached"] = "detached"): ...
"""

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

from plumbline.errors import PlumblineError, nearest
from plumbline.registry.declarations import PACKAGE, Declaration, covered, declarations_in, holds, lacking, needed
from plumbline.registry.facts import DESCRIPTION, FACTS, IMAGES, KINDS, PAIRED, PARTS, Kind

__all__ = [
    "DESCRIPTION", "FACTS", "IMAGES", "KINDS", "PACKAGE", "PAIRED", "PARTS", "Declaration", "Kind", "Registry",
    "covered", "criterion", "dataset", "declarations_in", "figure", "holds", "lacking", "load", "manipulation",
    "measure", "metric", "model", "needed", "page", "protocol", "table",
]  # fmt: skip

# The folders of the library that hold declarations.
FOLDERS = ("data", "models", "training", "attribution", "protocols", "papers", "report")
T = TypeVar("T")


def _with_flat_options(declared: T) -> T:
    """Let callers of a function pass the fields of its dataclass arguments as keywords; other objects are unchanged."""
    defaults = getattr(inspect.unwrap(declared), "__kwdefaults__", None) or {}  # type: ignore[arg-type]
    groups = {name: default for name, default in defaults.items() if is_dataclass(default)}
    if not groups:
        return declared

    @wraps(declared)  # type: ignore[arg-type]
    def call(*arguments: Any, **options: Any) -> Any:
        for name, default in groups.items():
            given = {field.name: options.pop(field.name) for field in fields(default) if field.name in options}
            options[name] = replace(options.get(name, default), **given)
        return declared(*arguments, **options)  # type: ignore[operator]

    return call  # type: ignore[return-value]


def _decorator(kind: Kind) -> Callable[..., Callable[[T], T]]:
    def declare(name: str, **facts: Any) -> Callable[[T], T]:
        return _with_flat_options

    declare.__name__ = declare.__qualname__ = kind
    declare.__doc__ = f"Declare a {kind}: its name, then {', '.join(FACTS[kind])}, then presets of its options."
    return declare


dataset, manipulation, model, measure, protocol, metric = (_decorator(kind) for kind in KINDS)
table, figure, page, criterion = (_decorator(kind) for kind in PARTS)


@cache
def _library() -> dict[tuple[str, str], Declaration]:
    return _scan([path for folder in FOLDERS for path in sorted((PACKAGE / folder).rglob("*.py"))], {})


def _scan(paths: Iterable[Path], known: Mapping[tuple[str, str], Declaration]) -> dict[tuple[str, str], Declaration]:
    """The known declarations and those of more files; a name may be declared once."""
    declarations = dict(known)
    for path in paths:
        for declaration in declarations_in(path):
            key = (declaration.kind, declaration.name)
            if key in declarations:
                raise PlumblineError(
                    f"The {key[0]} '{key[1]}' is declared twice, in '{declarations[key].path.name}' and "
                    f"'{path.name}'; rename one."
                )
            declarations[key] = declaration
    return declarations


class Registry:
    """The declarations of the library and of the user's plug-in files."""

    def __init__(self, plugins: Iterable[str | Path] = ()) -> None:
        self.plugins = tuple(Path(path) for path in plugins)
        self._declarations = _scan(self.plugins, _library())

    def names(self, kind: Kind) -> list[str]:
        """All names of one kind, sorted."""
        return sorted(name for k, name in self._declarations if k == kind)

    def get(self, kind: Kind, name: str) -> Declaration:
        """The declaration of a name; an unknown name is refused with the nearest known one."""
        try:
            return self._declarations[kind, name]
        except KeyError:
            raise PlumblineError(f"There is no {kind} '{name}'; {nearest(name, self.names(kind))}") from None

    def all(self, kind: Kind) -> list[Declaration]:
        """All declarations of one kind, sorted by name."""
        return [self._declarations[kind, name] for name in self.names(kind)]

    def experiments(self) -> list[Declaration]:
        """All protocols, and the tables of ROAR and of adversarial models, which have keys of their own in a config."""
        tables = [table for table in self.all("table") if table.equation]
        return sorted([*self.all("protocol"), *tables], key=lambda declaration: declaration.name)

    def metrics_of(self, experiment: Declaration) -> list[Declaration]:
        """The metrics that a protocol or table states, in its order; an unknown one is refused."""
        return [self.get("metric", name) for name in experiment.facts.get("metrics", [])]


def load(pointer: str) -> Any:
    """Import the object that a declaration points to."""
    source, attribute = pointer.rsplit(":", 1)
    if not source.endswith(".py"):
        return getattr(importlib.import_module(source), attribute)
    path = Path(source).resolve()
    name = f"plumbline_plugins.{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if name not in sys.modules:
        # A plug-in may import files from its own folder, which comes last so that it hides no installed module.
        if str(path.parent) not in sys.path:
            sys.path.append(str(path.parent))
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec and spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return getattr(sys.modules[name], attribute)
