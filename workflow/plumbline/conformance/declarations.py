"""Checks of declarations, the only ones of metrics and of parts of the report."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from plumbline.config.messages import validation_message
from plumbline.dag.checks import faults
from plumbline.errors import nearest
from plumbline.registry import IMAGES, PAIRED, Declaration, Registry, load

TASKS = ("classification", *PAIRED, IMAGES)
READS = {"model": ("words", "subwords", "pixels"), "manipulation": ("words", "pixels")}


# The value of options `steps` and `samples` in checks: it affects their time, not their result.
FEW_STEPS = 4


def with_few_steps(options: dict[str, Any]) -> dict[str, Any]:
    """Options with at most FEW_STEPS `steps` and `samples`."""
    many = {name: value for name, value in options.items() if name in ("steps", "samples") and isinstance(value, int)}
    return {**options, **{name: min(value, FEW_STEPS) for name, value in many.items()}}


def check_facts(declaration: Declaration) -> Iterator[str]:
    """What it reads, its range and the defaults of its options are valid; the registry checks the types of facts."""
    reads = READS.get(declaration.kind)
    if reads and declaration.reads not in reads:
        yield f"its declaration states reads={declaration.reads!r}; {nearest(str(declaration.reads), reads)}"
    if not _is_range(declaration.facts.get("range")):
        yield f"its declaration states range={declaration.range!r}; it must be [minimum, maximum]; None is no bound."
    for name, option in declaration.options.items():
        try:
            TypeAdapter(option.type).validate_python(option.default)
        except ValidationError:
            yield f"its option '{name}: {option.annotation}' has the default {option.default!r} of another type."


def _is_range(stated: Any) -> bool:
    """Whether it is None or [minimum, maximum], where None is no bound."""
    if stated is None:
        return True
    if not isinstance(stated, list) or len(stated) != 2:
        return False
    ends = [end for end in stated if end is not None]
    return all(isinstance(end, int | float) for end in ends) and ends == sorted(set(ends))


def check_recipe(recipe: type[BaseModel], declaration: Declaration, fact: str) -> Iterator[str]:
    """A recipe of a declaration has known keys and valid values."""
    try:
        recipe(**getattr(declaration, fact))
    except ValidationError as error:
        yield f"in its declaration {validation_message(error, fact, recipe)}"


def check_documentation(declaration: Declaration, *facts: str) -> Iterator[str]:
    if not declaration.summary:
        yield "it has no docstring; describe it in one sentence."
    for fact in facts:
        if not getattr(declaration, fact):
            yield f"its declaration does not state `{fact}`."


def check_metric(declaration: Declaration) -> Iterator[str]:
    """A metric declares its direction, range, unit and equation."""
    yield from check_documentation(declaration, "direction", "range", "unit", "equation")
    if declaration.direction not in ("higher", "lower"):
        yield f"its direction is '{declaration.direction}'; it must be 'higher' or 'lower'."
    if not callable(load(declaration.pointer)):
        yield "it is not callable."


# The facts that each part of the report must declare.
REQUIRED_FACTS = {"table": (), "figure": (), "page": ("title",), "criterion": ("table", "direction")}


def check_part(declaration: Declaration, registry: Registry) -> Iterator[str]:
    """A part of the report has its required facts, and names existing sources, tables and pages."""
    yield from check_documentation(declaration, *REQUIRED_FACTS[declaration.kind])
    yield from (f"it {fault}" for fault in faults(declaration, registry))
    if not callable(load(declaration.pointer)):
        yield "it is not callable."
