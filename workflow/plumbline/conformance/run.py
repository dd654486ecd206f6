"""All checks of one registered object."""

from collections.abc import Callable, Iterator
from pathlib import Path

from plumbline.conformance.datasets import check_dataset
from plumbline.conformance.declarations import check_facts, check_metric, check_part
from plumbline.conformance.manipulations import check_manipulation
from plumbline.conformance.measures import check_measure
from plumbline.conformance.models import check_model
from plumbline.conformance.notes import Note, failure
from plumbline.conformance.protocols import check_protocol
from plumbline.errors import PlumblineError
from plumbline.registry import PARTS, Kind, Registry


def examine(kind: Kind, name: str, registry: Registry, raw: Path | None = None) -> list[str]:
    """All that is told of one registered object: faults, and notes of what was tried. `raw` is the folder of the
    publishers' files; without it, datasets are not read."""
    declaration = registry.get(kind, name)
    faults: dict[str, Callable[[], Iterator[str]]] = {
        "metric": lambda: check_metric(declaration),
        "dataset": lambda: check_dataset(declaration, raw),
        "manipulation": lambda: check_manipulation(declaration),
        "model": lambda: check_model(declaration, registry),
        "measure": lambda: check_measure(declaration, registry),
        "protocol": lambda: check_protocol(declaration),
        **{part: lambda: check_part(declaration, registry) for part in PARTS},
    }
    told = list(check_facts(declaration))
    if told:
        return told
    try:
        # One by one, so that what was found before an exception is told.
        for fault in faults[kind]():
            told.append(fault)
    except PlumblineError as error:
        told.append(str(error).removeprefix(f"Dataset '{name}'").lstrip(",: "))
    except Exception as error:
        told.append(failure(error, declaration.path))
    return told


def check(kind: Kind, name: str, registry: Registry, raw: Path | None = None) -> list[str]:
    """All that is wrong with one registered object, as sentences."""
    told = examine(kind, name, registry, raw)
    return [f"The {kind} '{name}': {fault}" for fault in told if not isinstance(fault, Note)]
