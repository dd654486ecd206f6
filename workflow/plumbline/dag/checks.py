"""Checks that the names in declarations of tables, figures, pages and criteria exist."""

from collections.abc import Collection, Iterator

from plumbline.dag.facts import Facts
from plumbline.errors import PlumblineError, nearest
from plumbline.registry import PARTS, Declaration, Registry

# Kinds of files and the sets of cells that each may cover; some may also cover those of a protocol.
PROTOCOL_KINDS = ("scores", "datasets", "instances")
KINDS = {
    "predictions": ("", "attacked", "curves", "shown"),
    "histories": ("adversaries",),
    "manifests": ("", "models"),
    "datasets": ("", "shown"),
    "instances": ("shown",),
    "importances": ("", "shown", "unmasked"),
    "scores": (),
    "traces": ("",),
    "criteria": ("",),
}
AXES = ("dataset", "model")
CELLS = ("adversaries", "curves", "explained")
# Conditions for a dataset and model of a figure, and for a figure of the whole study.
PLOT_CONDITIONS = ("images", "texts", "visibility", "reassignment", "traced", "shown", "whole")
CONDITIONS = (*PLOT_CONDITIONS, "vector-scale", "attention-pairs")
SECTIONS = ("", "roar", "adversaries", "degraded")
FACTS = [name for name in vars(Facts) if not name.startswith("_") and name != "requested_by"]


def check_declarations(registry: Registry, protocols: Collection[str] = ()) -> None:
    """Refuse the first declaration of a plug-in with an unknown name, or that hides a protocol of the study."""
    for declaration in (part for kind in PARTS for part in registry.all(kind) if part.path in registry.plugins):
        kind, name, file = declaration.kind, declaration.name, declaration.path.name
        if kind == "table" and name in protocols:
            raise PlumblineError(f"`protocols.{name}`: '{name}' is a table of {file}; rename one.")
        for fault in faults(declaration, registry):
            raise PlumblineError(f"{file}: the {kind} '{name}' {fault}")


def faults(declaration: Declaration, registry: Registry) -> Iterator[str]:
    """What is wrong with a declaration, such as unknown names."""
    protocols, pages = registry.names("protocol"), registry.names("page")
    tables = [*registry.names("table"), *protocols]
    facts = declaration.facts
    for source in facts.get("reads", []):
        kind, _, of = source.removesuffix("?").partition(":")
        if kind in KINDS and (of in KINDS[kind] or (kind in PROTOCOL_KINDS and of in protocols)):
            continue
        if kind in tables and not of:
            continue
        yield (
            f"reads '{source}', which is not a table; "
            f"{nearest(source, [*tables, *KINDS, *(f'scores:{name}' for name in protocols)])}"
        )
    known = {
        "params": FACTS,
        "per": AXES,
        "only": CONDITIONS,
        "tables": [*tables, "*"],
        "metrics": registry.names("metric"),
    }
    for fact, names in known.items():
        for name in facts.get(fact, []):
            if name.partition(":")[0] not in names:
                yield f"states {fact} '{name}', which does not exist; {nearest(name, list(names))}"
    single = {"of": SECTIONS, "cells": ["", *CELLS, *protocols], "page": ["", *pages], "table": tables}
    for fact, names in single.items():
        if fact in facts and facts[fact] not in names:
            yield (
                f"states {fact} '{facts[fact]}', which does not exist; "
                f"{nearest(str(facts[fact]), [name for name in names if name])}"
            )
    if declaration.kind == "table" and declaration.name in protocols:
        yield "has the name of a protocol, whose table it would hide; choose another name."
    if facts.get("per") and not facts["cells"]:
        yield f'has a figure per {" and ".join(facts["per"])}, but no cells; add cells="PROTOCOL".'
    if "shown" in facts.get("only", []) and "model" not in facts["per"]:
        yield "shows instances of a model; add 'model' to `per`."
    if declaration.kind == "criterion" and facts["direction"] not in ("higher", "lower"):
        yield f"states direction '{facts['direction']}'; it must be 'higher' or 'lower'."
