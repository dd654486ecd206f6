"""Declarations, read from the syntax tree of a file without importing it."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from plumbline.errors import PlumblineError, nearest
from plumbline.registry.facts import FACT_TYPES, FACTS, Kind

PACKAGE = Path(__file__).parents[1]
OPTION_TYPES = {"Literal": Literal, "int": int, "float": float, "bool": bool, "str": str, "list": list, "dict": dict}
# The name, annotation and default of a keyword-only argument or of a field of a dataclass.
Argument = tuple[str, ast.expr | None, ast.expr | None]
Definition = ast.FunctionDef | ast.ClassDef
# The syntax that may be evaluated to show its value as a literal in a message.
EVALUATED = (
    ast.Expression, ast.Constant, ast.Dict, ast.List, ast.Tuple, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp,
    ast.comprehension, ast.Name, ast.Load, ast.Store, ast.JoinedStr, ast.FormattedValue, ast.BinOp, ast.Add, ast.Sub,
    ast.Mult, ast.Mod, ast.UnaryOp, ast.USub,
)  # fmt: skip


@dataclass(frozen=True)
class Option:
    """A value that the config may set on an object."""

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
        """The argument of `load`: ``package.module:attribute`` or, for a plug-in, ``file.py:attribute``."""
        if self.path.is_relative_to(PACKAGE):
            module = ".".join(("plumbline", *self.path.relative_to(PACKAGE).with_suffix("").parts))
            return f"{module}:{self.attribute}"
        return f"{self.path}:{self.attribute}"

    @property
    def defaults(self) -> dict[str, Any]:
        """The default of each option."""
        return {name: option.default for name, option in self.options.items()}

    def __getattr__(self, fact: str) -> Any:
        facts = object.__getattribute__(self, "facts")
        if fact in facts:
            return facts[fact]
        raise AttributeError(fact)


def holds(entry: str, options: Mapping[str, Any]) -> bool:
    """Whether an entry applies with these options; ``words=vader:lexicon`` does only if `words` is `vader`."""
    option, condition, value = entry.partition(":")[0].partition("=")
    return not condition or str(options.get(option)) == value


def needed(declaration: Declaration, options: Mapping[str, Any]) -> set[str]:
    """What a measure or protocol needs; ``attention=detached:attention`` is needed only with that option."""
    return {entry.rpartition(":")[2] for entry in declaration.needs if holds(entry, options)}


def lacking(declaration: Declaration, options: Mapping[str, Any], provided: Iterable[str]) -> list[str]:
    """What a measure or protocol needs and a model does not provide; of ``attention or heads`` one is enough."""
    parts = set(provided)
    return sorted(entry for entry in needed(declaration, options) if parts.isdisjoint(entry.split(" or ")))


def covered(declaration: Declaration, options: Mapping[str, Any]) -> set[str]:
    """The tokens that a measure scores in addition to words: `pair`, words of second texts, and `specials`.

    They follow from the fact `covers` or from the options `texts` and `specials`.
    """
    pair = {"pair"} if options.get("texts") == "both" else set()
    specials = {"specials"} if options.get("specials") is True else set()
    return {*declaration.covers} | pair | specials


def declarations_in(path: Path) -> Iterator[Declaration]:
    """All declarations of one file."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PlumblineError(f"The plug-in file '{path}' does not exist.") from error
    except IsADirectoryError as error:
        raise PlumblineError(f"The plug-in file '{path}' is a folder; name a Python file.") from error
    except OSError as error:
        raise PlumblineError(f"The plug-in file '{path}' cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise PlumblineError(f"'{path}' is not a Python file: it is not UTF-8 text.") from error
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno else ""
        raise PlumblineError(f"The plug-in file '{path}' is not valid Python: {error.msg}{line}.") from error
    # Before Python 3.12, text with a null byte.
    except ValueError as error:
        raise PlumblineError(f"The plug-in file '{path}' is not valid Python: {error}.") from error
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            calls = [call for call in node.decorator_list if isinstance(call, ast.Call) and _called(call) in FACTS]
            for call in calls:
                yield _declaration(call, calls[-1], node, tree, path)


def _called(decorator: ast.expr) -> str:
    """The name of a decorator, without its module and its arguments."""
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")


def _declaration(call: ast.Call, lowest: ast.Call, node: Definition, tree: ast.Module, path: Path) -> Declaration:
    """One decorator's declaration. In a stack, the facts of the lowest decorator are the defaults of the others."""
    kind: Kind = _called(call)  # type: ignore[assignment]
    where = f"{path.name}, line {call.lineno}: the {kind} '{node.name}'"
    name = _literal(call.args[0], "its name", where) if call.args else None
    if not isinstance(name, str) or not name:
        raise PlumblineError(f'{where} must be declared with its name first, such as @{kind}("my-{kind}").')
    keywords, shared = (
        {keyword.arg: _literal(keyword.value, f"`{keyword.arg}`", where) for keyword in c.keywords if keyword.arg}
        for c in (call, lowest)
    )
    options = _options(node, tree, where)
    facts = {fact: keywords.pop(fact, shared.get(fact, default)) for fact, default in FACTS[kind].items()}
    if isinstance(facts.get("citation"), str):
        facts["citation"] = [facts["citation"]]
    for preset, value in keywords.items():
        if preset not in options:
            raise PlumblineError(
                f"{where} states '{preset}', which is not a known argument; {nearest(preset, [*FACTS[kind], *options])}"
            )
        options[preset] = Option(options[preset].type, options[preset].annotation, value)
    _check_facts(kind, facts, options, where)
    first = (ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ")
    return Declaration(kind, name, path, node.name, facts, options, facts.pop("summary", "") or first)


def _check_facts(kind: Kind, facts: Mapping[str, Any], options: Mapping[str, Option], where: str) -> None:
    """Refuse facts of a wrong type, and limits and requirements of options that do not exist."""
    for fact, default in FACTS[kind].items():
        value, is_list = facts[fact], isinstance(default, list)
        if default is not None and type(value) is not type(default):
            example = f", such as [{value!r}]" if is_list and isinstance(value, str) else ""
            raise PlumblineError(f"{where} states {fact}={value!r}; it must be {FACT_TYPES[type(default)]}{example}.")
        if is_list and not all(isinstance(entry, str) for entry in value):
            raise PlumblineError(f"{where} states {fact}={value!r}; it must contain only strings.")
    for option, bounds in facts.get("limits", {}).items():
        is_pair = isinstance(bounds, list | tuple) and len(bounds) == 2
        if not is_pair or not all(bound is None or isinstance(bound, int | float) for bound in bounds):
            raise PlumblineError(
                f"{where} states the limits {bounds!r} of '{option}'; write [minimum, maximum], where one may be None."
            )
    for fact, prefix in (("limits", "limits of"), ("required", "as required")):
        for option in facts.get(fact, ()):
            if option not in options:
                raise PlumblineError(
                    f"{where} states {prefix} '{option}', which is not an option; {nearest(option, list(options))}"
                )


def _literal(node: ast.expr, what: str, where: str) -> Any:
    """The value of a decorator's argument, a literal; for any other expression an error, with the literal to write."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError) as error:
        code = ast.unparse(node)
        message = f"{where}: {what} is `{code if len(code) < 80 else f'{code[:77]}…'}`, which is not a literal"
        advice = "declarations are read without running the file, so write the value itself"
        if all(isinstance(part, EVALUATED) for part in ast.walk(node)):
            with suppress(Exception):
                value = eval(compile(ast.Expression(node), "declaration", "eval"), {"__builtins__": {}})
                advice += f": {value!r}"
        raise PlumblineError(f"{message}; {advice}.") from error


def _options(node: Definition, tree: ast.Module, where: str) -> dict[str, Option]:
    """The options of a function, or of a class's `__init__`: its keyword-only arguments."""
    if isinstance(node, ast.ClassDef):
        inits = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
        if not inits:
            return {}
        # Only functions take the fields of a dataclass.
        node, tree = inits[0], ast.Module([], [])
    options: dict[str, Option] = {}
    for name, type_node, default in _arguments(node, tree):
        if type_node is None or default is None:
            raise PlumblineError(f"{where}: option '{name}' needs a type and a default.")
        if name in options:
            raise PlumblineError(f"{where}: option '{name}' is declared twice, by an argument and in a dataclass.")
        annotation = ast.unparse(type_node)
        try:
            type_ = eval(annotation, {"__builtins__": {}}, OPTION_TYPES)
            value = ast.literal_eval(default)
        except (NameError, ValueError, TypeError) as error:
            known = ", ".join(OPTION_TYPES)
            raise PlumblineError(
                f"{where}: option '{name}: {annotation}' must be typed with {known} and have a literal default."
            ) from error
        options[name] = Option(type_, annotation, value)
    return options


def _arguments(node: ast.FunctionDef, tree: ast.Module) -> Iterator[Argument]:
    """The keyword-only arguments of a function; the fields of one such as `options: Options = Options()`."""
    for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        name = ast.unparse(default).removesuffix("()") if isinstance(default, ast.Call) else ""
        yield from _dataclass_fields(name, tree) or [(argument.arg, argument.annotation, default)]


def _dataclass_fields(name: str, tree: ast.Module) -> list[Argument]:
    """The fields of a dataclass that a file declares or imports from the library; empty for any other name."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name and "dataclass" in map(_called, node.decorator_list):
            return [(ast.unparse(f.target), f.annotation, f.value) for f in node.body if isinstance(f, ast.AnnAssign)]
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            package, *path = (node.module or "").split(".")
            return _dataclass_fields(name, _library_tree(*path)) if package == "plumbline" else []
    return []


@cache
def _library_tree(*module: str) -> ast.Module:
    return ast.parse(PACKAGE.joinpath(*module).with_suffix(".py").read_text(encoding="utf-8"))
