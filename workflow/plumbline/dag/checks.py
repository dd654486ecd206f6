"""Names in the declarations of tables, figures, pages and criteria that stand for nothing, in one sentence."""

from collections.abc import Collection, Iterator

from plumbline.dag.facts import Facts
from plumbline.errors import PlumblineError, nearest
from plumbline.registry import PARTS, Declaration, Registry

# Kinds of files, and what they may be about; some may be about a protocol.
OF_PROTOCOLS = ("scores", "datasets", "instances")
KINDS = {
    "predictions": ("", "curves", "shown"),
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
CONDITIONS = ("images", "texts", "visibility", "reassignment", "traced", "shown", "whole")
SECTIONS = ("", "roar", "adversaries")
FACTS = [name for name in vars(Facts) if not name.startswith("_") and name != "asked"]


def check_declarations(registry: Registry, protocols: Collection[str] = ()) -> None:
    """Refuse the first declaration of a plug-in that names what there is not, or hides a protocol of the study."""
    own = [one for kind in PARTS for one in registry.all(kind) if one.path in registry.plugins]
    for one in own:
        if one.kind == "table" and one.name in protocols:
            raise PlumblineError(f"`protocols.{one.name}`: '{one.name}' is a table of {one.path.name}; rename one.")
        for fault in faults(one, registry):
            raise PlumblineError(f"{one.path.name}: the {one.kind} '{one.name}' {fault}")


def faults(declaration: Declaration, registry: Registry) -> Iterator[str]:
    """What a declaration names that there is not."""
    protocols, pages = registry.names("protocol"), registry.names("page")
    tables = [*registry.names("table"), *protocols]
    facts = declaration.facts
    for source in facts.get("reads", []):
        kind, _, of = source.removesuffix("?").partition(":")
        if kind in KINDS and (of in KINDS[kind] or (kind in OF_PROTOCOLS and of in protocols)):
            continue
        if kind in tables and not of:
            continue
        yield f"reads '{source}'; {nearest(source, [*tables, *KINDS, *(f'scores:{name}' for name in protocols)])}"
    known = {
        "params": FACTS,
        "per": AXES,
        "only": CONDITIONS,
        "tables": [*tables, "*"],
    }
    for fact, names in known.items():
        for name in facts.get(fact, []):
            if name.partition(":")[0] not in names:
                yield f"states {fact} '{name}'; {nearest(name, list(names))}"
    single = {"of": SECTIONS, "cells": ["", *CELLS, *protocols], "page": ["", *pages], "table": tables}
    for fact, names in single.items():
        if fact in facts and facts[fact] not in names:
            yield f"states {fact} '{facts[fact]}'; {nearest(str(facts[fact]), [name for name in names if name])}"
    if declaration.kind == "table" and declaration.name in protocols:
        yield "has the name of a protocol, whose table it would hide; choose another."
    if facts.get("per") and not facts["cells"]:
        yield f'has a figure per {" and ".join(facts["per"])}, but not of which cells; state cells="PROTOCOL".'
    if "shown" in facts.get("only", []) and "model" not in facts["per"]:
        yield "shows instances of a model; add 'model' to `per`."
    if declaration.kind == "criterion" and facts["direction"] not in ("higher", "lower"):
        yield f"states direction '{facts['direction']}'; it must be 'higher' or 'lower'."
