"""Plug-ins by name, each declared by a decorator: datasets, manipulations, models, measures, protocols and metrics, and
the parts of the report: tables, figures, pages and criteria of the scorecard.

Declarations are read from the syntax tree, never by importing, because every job re-reads the config and must not pay
for torch or spaCy. So a decorator takes literals only, and the keyword-only arguments of the decorated function (or of
the decorated class's ``__init__``) are the options that the config may set: their annotations are the types that are
checked and their defaults the defaults. The object itself is imported by `load`, in the job that needs it.

    @measure("gradient-attached", needs=["gradient"], attention="attached")
    @measure("gradient", needs=["gradient", "attention"])
    def gradient(evaluator, instances, *, attention: Literal["detached", "attached"] = "detached"): ...
"""

import ast
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from plumbline.errors import PlumblineError, nearest

Kind = Literal[
    "dataset", "manipulation", "model", "measure", "protocol", "metric", "table", "figure", "page", "criterion"
]
# The parts of a report. A config never names them: they follow from what a study has.
PARTS: tuple[Kind, ...] = ("table", "figure", "page", "criterion")
KINDS: tuple[Kind, ...] = tuple(kind for kind in get_args(Kind) if kind not in PARTS)
PACKAGE = Path(__file__).parent
ROOMS = ("data", "models", "training", "attribution", "protocols", "papers", "report")

# What a declaration states about its object. Any other keyword of the decorator presets an option. `limits` are the
# least and the greatest value of options that have such; None is no bound. `required` are options that a config must
# set.
FACTS: dict[str, dict[str, Any]] = {
    "dataset": {
        "files": {},
        "source": "",
        "licence": "",
        "task": "classification",
        "counts": {},
        "preparation": {},
        "training": {},
        "subword_training": {},
        "model_options": {},
        "limits": {},
    },
    "manipulation": {"reads": "words", "groups": [], "words": [], "visibility": "", "equation": "", "limits": {}},
    "model": {
        "provides": [],
        "tasks": ["classification"],
        "training": {},
        "reads": "words",
        "limits": {},
        "required": [],
    },
    "measure": {
        "needs": [],
        "splits": [],
        "covers": [],
        "pixels": False,
        "cheap": False,
        "limits": {},
        "required": [],
        "direction": "higher",
        "range": None,
        "equation": "",
    },
    "protocol": {
        "needs": [],
        "variants": "plain",
        "pixels": True,
        "least_measures": 1,
        "least_seeds": 1,
        "gpu": False,
        "equation": "",
        "limits": {},
        # The function that prints its table in LaTeX, as `module:function`, if its layout is not enough.
        "latex": "",
    },
    "metric": {"direction": "", "range": None, "unit": "", "equation": ""},
    # `reads` names the files that a table or figure is made from (plumbline/dag/sources.py lists them), a `?` behind a
    # name those that a study may lack; `params` the facts of the study that it wants; `of` what a study must have.
    "table": {"reads": [], "params": [], "of": ""},
    # `per` are the axes with a figure for each value among `cells`; `only` says which have one.
    "figure": {
        "reads": [],
        "params": [],
        "of": "",
        "cells": "",
        "per": [],
        "only": [],
        "page": "",
        "experiment": "",
        "caption": "",
        "order": 50,
    },
    # A study has a page if it has one of its `tables`.
    "page": {"title": "", "about": "", "group": "Protocols", "tables": [], "needs": [], "order": 50},
    # A column of the scorecard. `measure` is the kind of measure that it is about, if it is about one alone.
    "criterion": {"table": "", "direction": "", "range": None, "variants": "plain", "measure": "", "order": 50},
}
# The tasks whose texts have a second one beside them.
PAIRED = ("question answering", "inference", "paraphrase")
# The task whose texts are pictures, one token a pixel.
IMAGES = "image classification"
# What a fact must be, by the type of its default.
WANTED: dict[type, str] = {
    bool: "True or False",
    int: "a whole number",
    str: "text",
    list: "a list",
    dict: "keys and values",
}
OPTION_TYPES = {"Literal": Literal, "int": int, "float": float, "bool": bool, "str": str, "list": list, "dict": dict}
T = TypeVar("T")


@dataclass(frozen=True)
class Option:
    """One thing that the config may set on an object."""

    type: Any
    annotation: str
    default: Any


@dataclass(frozen=True)
class Declaration:
    """What the registry knows about an object without importing it."""

    kind: Kind
    name: str
    path: Path
    attribute: str
    facts: dict[str, Any]
    options: dict[str, Option] = field(default_factory=dict)
    summary: str = ""

    @property
    def pointer(self) -> str:
        """Where `load` finds the object: ``package.module:attribute`` or, for a plug-in, ``file.py:attribute``."""
        if self.path.is_relative_to(PACKAGE):
            module = ".".join(("plumbline", *self.path.relative_to(PACKAGE).with_suffix("").parts))
            return f"{module}:{self.attribute}"
        return f"{self.path}:{self.attribute}"

    def __getattr__(self, fact: str) -> Any:
        facts = object.__getattribute__(self, "facts")
        if fact in facts:
            return facts[fact]
        raise AttributeError(fact)


def holds(entry: str, options: Mapping[str, Any]) -> bool:
    """Whether an entry counts with these options: one such as ``words=vader:lexicon`` only if `words` is `vader`."""
    option, condition, value = entry.partition(":")[0].partition("=")
    return not condition or str(options.get(option)) == value


def needed(declaration: Declaration, options: Mapping[str, Any]) -> set[str]:
    """What a measure needs of a model with these options; ``attention=detached:attention`` only if detached."""
    return {entry.rpartition(":")[2] for entry in declaration.needs if holds(entry, options)}


def covered(declaration: Declaration, options: Mapping[str, Any]) -> set[str]:
    """What a measure tells of beside the words of texts: `pair`, those of second texts, and `specials`.

    It states so, or has the options `texts` and `specials` for it.
    """
    asked = {"pair": options.get("texts") == "both", "specials": options.get("specials") is True}
    return {*declaration.covers, *(part for part, there in asked.items() if there)}


def _decorator(kind: Kind) -> Callable[..., Callable[[T], T]]:
    def declare(name: str, **stated: Any) -> Callable[[T], T]:
        return lambda declared: declared

    declare.__name__ = declare.__qualname__ = kind
    declare.__doc__ = f"Declare a {kind}: its name, then {', '.join(FACTS[kind])}, then presets of its options."
    return declare


dataset, manipulation, model, measure, protocol, metric = (_decorator(kind) for kind in KINDS)
table, figure, page, criterion = (_decorator(kind) for kind in PARTS)


def _options(node: ast.FunctionDef | ast.ClassDef, where: str) -> dict[str, Option]:
    if isinstance(node, ast.ClassDef):
        inits = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
        if not inits:
            return {}
        node = inits[0]
    options = {}
    for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        if argument.annotation is None or default is None:
            raise PlumblineError(f"{where}: option '{argument.arg}' needs a type and a default.")
        annotation = ast.unparse(argument.annotation)
        try:
            type_ = eval(annotation, {"__builtins__": {}}, OPTION_TYPES)
            value = ast.literal_eval(default)
        except (NameError, ValueError, TypeError) as error:
            known = ", ".join(OPTION_TYPES)
            raise PlumblineError(
                f"{where}: option '{argument.arg}: {annotation}' must be typed with {known} and have a literal default."
            ) from error
        options[argument.arg] = Option(type_, annotation, value)
    return options


def declarations_in(path: Path) -> Iterator[Declaration]:
    """All declarations of one file, read from its syntax tree."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PlumblineError(f"The plug-in file '{path}' does not exist.") from error
    except IsADirectoryError as error:
        raise PlumblineError(f"The plug-in file '{path}' is a folder; name a Python file.") from error
    except OSError as error:
        raise PlumblineError(f"The plug-in file '{path}' cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise PlumblineError(f"'{path}' is no Python file: it is not UTF-8 text.") from error
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno else ""
        raise PlumblineError(f"The plug-in file '{path}' is not valid Python: {error.msg}{line}.") from error
    # Before Python 3.12, text with a null byte.
    except ValueError as error:
        raise PlumblineError(f"The plug-in file '{path}' is not valid Python: {error}.") from error
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        calls = [call for call in node.decorator_list if isinstance(call, ast.Call) and _kind(call) in FACTS]
        for call in calls:
            yield _declaration(call, calls[-1], node, path)


def _kind(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


# What may stand in an expression whose value is shown as the literal to write in its place.
SIMPLE = (
    ast.Expression, ast.Constant, ast.Dict, ast.List, ast.Tuple, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp,
    ast.comprehension, ast.Name, ast.Load, ast.Store, ast.JoinedStr, ast.FormattedValue, ast.BinOp, ast.Add, ast.Sub,
    ast.Mult, ast.Mod, ast.UnaryOp, ast.USub,
)  # fmt: skip


def _literal(node: ast.expr, what: str, where: str) -> Any:
    """The value of an argument of a declaration, which is read and never run; what is no literal is refused with it."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError) as error:
        shown = ast.unparse(node)
        told = f"{where}: {what} is `{shown if len(shown) < 80 else f'{shown[:77]}…'}`, which is no literal"
        advice = "declarations are read without being run, so write the value itself"
        if all(isinstance(part, SIMPLE) for part in ast.walk(node)):
            with suppress(Exception):
                value = eval(compile(ast.Expression(node), "declaration", "eval"), {"__builtins__": {}})
                advice += f": {value!r}"
        raise PlumblineError(f"{told}; {advice}.") from error


def _declaration(call: ast.Call, lowest: ast.Call, node: ast.FunctionDef | ast.ClassDef, path: Path) -> Declaration:
    """One decorator's declaration. In a stack, the facts of the lowest one hold for all that do not state their own."""
    kind: Kind = _kind(call)  # type: ignore[assignment]
    where = f"{path.name}, line {call.lineno}: the {kind} '{node.name}'"
    if not call.args:
        raise PlumblineError(f'{where} must be declared with its name first, such as @{kind}("my-{kind}").')
    name = _literal(call.args[0], "its name", where)
    stated, shared = (
        {keyword.arg: _literal(keyword.value, f"`{keyword.arg}`", where) for keyword in c.keywords if keyword.arg}
        for c in (call, lowest)
    )
    if not isinstance(name, str) or not name:
        raise PlumblineError(f'{where} must be declared with its name first, such as @{kind}("my-{kind}").')
    options = _options(node, where)
    facts = {fact: stated.pop(fact, shared.get(fact, default)) for fact, default in FACTS[kind].items()}
    for fact, default in FACTS[kind].items():
        if default is not None and type(facts[fact]) is not type(default):
            example = (
                f", such as [{facts[fact]!r}]" if isinstance(default, list) and isinstance(facts[fact], str) else ""
            )
            raise PlumblineError(f"{where} states {fact}={facts[fact]!r}; it must be {WANTED[type(default)]}{example}.")
        if isinstance(default, list) and not all(isinstance(word, str) for word in facts[fact]):
            raise PlumblineError(f"{where} states {fact}={facts[fact]!r}; it must hold names alone.")
    for preset, value in stated.items():
        if preset not in options:
            raise PlumblineError(f"{where} states '{preset}': {nearest(preset, [*FACTS[kind], *options])}")
        options[preset] = Option(options[preset].type, options[preset].annotation, value)
    for option, bounds in facts.get("limits", {}).items():
        two = isinstance(bounds, list | tuple) and len(bounds) == 2
        if not two or not all(bound is None or isinstance(bound, int | float) for bound in bounds):
            raise PlumblineError(
                f"{where} states the limits {bounds!r} of '{option}'; write [least, most], of which one may be None."
            )
    for fact, said in (("limits", "limits of"), ("required", "as required")):
        for option in facts.get(fact, ()):
            if option not in options:
                raise PlumblineError(f"{where} states {said} '{option}': {nearest(option, list(options))}")
    summary = (ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ")
    return Declaration(kind, name, path, node.name, facts, options, summary)


@cache
def _library() -> dict[tuple[str, str], Declaration]:
    return _scan([path for room in ROOMS for path in sorted((PACKAGE / room).rglob("*.py"))], {})


def _scan(paths: Iterable[Path], known: Mapping[tuple[str, str], Declaration]) -> dict[tuple[str, str], Declaration]:
    """What is known, with the declarations of files; a name may be declared once."""
    found = dict(known)
    for path in paths:
        for declaration in declarations_in(path):
            key = (declaration.kind, declaration.name)
            if key in found:
                raise PlumblineError(
                    f"The {key[0]} '{key[1]}' is declared twice, in '{found[key].path.name}' and '{path.name}'; "
                    "rename one."
                )
            found[key] = declaration
    return found


class Registry:
    """The declarations of the library and of the user's plug-in files."""

    def __init__(self, plugins: Iterable[str | Path] = ()) -> None:
        self.plugins = tuple(Path(path) for path in plugins)
        self._found = _scan(self.plugins, _library())

    def names(self, kind: Kind) -> list[str]:
        """All names of one kind, sorted."""
        return sorted(name for k, name in self._found if k == kind)

    def get(self, kind: Kind, name: str) -> Declaration:
        """The declaration of a name; a misspelt one is refused with the nearest right one."""
        try:
            return self._found[kind, name]
        except KeyError:
            raise PlumblineError(f"There is no {kind} '{name}'; {nearest(name, self.names(kind))}") from None

    def all(self, kind: Kind) -> list[Declaration]:
        """All declarations of one kind, sorted by name."""
        return [self._found[kind, name] for name in self.names(kind)]


def load(pointer: str) -> Any:
    """Import the object that a declaration points to."""
    place, attribute = pointer.rsplit(":", 1)
    if not place.endswith(".py"):
        return getattr(importlib.import_module(place), attribute)
    path = Path(place).resolve()
    name = f"plumbline_plugins.{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if name not in sys.modules:
        # A plug-in may import files that lie beside it; last, so that they hide nothing that is installed.
        if str(path.parent) not in sys.path:
            sys.path.append(str(path.parent))
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec and spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return getattr(sys.modules[name], attribute)
