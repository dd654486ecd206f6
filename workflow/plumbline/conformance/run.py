"""Run all checks of a registered object."""

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
    """The faults of a registered object, and notes on what was checked. `raw` is the folder of the publishers' files;
    without it, datasets are not read."""
    declaration = registry.get(kind, name)
    checks: dict[str, Callable[[], Iterator[str]]] = {
        "metric": lambda: check_metric(declaration),
        "dataset": lambda: check_dataset(declaration, raw),
        "manipulation": lambda: check_manipulation(declaration),
        "model": lambda: check_model(declaration, registry),
        "measure": lambda: check_measure(declaration, registry),
        "protocol": lambda: check_protocol(declaration, registry),
        **{part: lambda: check_part(declaration, registry) for part in PARTS},
    }
    results = list(check_facts(declaration))
    if results:
        return results
    try:
        # One by one, so that results before an exception are kept.
        for result in checks[kind]():
            results.append(result)
    except PlumblineError as error:
        results.append(str(error).removeprefix(f"Dataset '{name}'").lstrip(",: "))
    except Exception as error:
        results.append(failure(error, declaration.path))
    return results


def check(kind: Kind, name: str, registry: Registry, raw: Path | None = None) -> list[str]:
    """The faults of a registered object as sentences."""
    results = examine(kind, name, registry, raw)
    return [f"The {kind} '{name}': {result}" for result in results if not isinstance(result, Note)]
