"""Variants of a dataset with known ground truth: labels are redrawn, and texts or images changed accordingly."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from random import Random
from typing import Any

from plumbline.config.entries import ManipulationEntry
from plumbline.config.resolved import Resolved, check_listed
from plumbline.config.variants import PLAIN, Manipulated
from plumbline.errors import PlumblineError, nearest
from plumbline.registry import IMAGES, Declaration

BETWEEN, LEVELS = "between", "levels"


def _values(name: str, draw: int, option: str, value: Any, whole: bool, where: str) -> list[Any]:
    """The values of an option in one draw: a single one, or one for each level."""
    if not isinstance(value, Mapping):
        return [value]
    if set(value) == {LEVELS} and isinstance(value[LEVELS], list) and value[LEVELS]:
        for level in value[LEVELS]:
            if isinstance(level, bool) or not isinstance(level, int | float):
                raise PlumblineError(f"`{where}.{option}.{LEVELS}` holds {level!r}; levels must be numbers.")
        return list(value[LEVELS])
    bounds = value.get(BETWEEN, ())
    numbers = isinstance(bounds, list) and all(isinstance(bound, int | float) for bound in bounds)
    if set(value) != {BETWEEN} or not numbers or len(bounds) != 2 or bounds[0] > bounds[1]:
        raise PlumblineError(
            f"`{where}.{option}` is {value!r}; write a value, {{between: [low, high]}} or {{levels: [...]}}."
        )
    # Seeded by name, so that a new option does not change the values of others.
    drawn = Random(f"{name} {draw} {option}").uniform(*bounds)
    return [int(drawn)] if whole else [drawn]


def expand(name: str, entry: ManipulationEntry, declaration: Declaration, datasets: Sequence[str]) -> Iterator[Any]:
    """The variants of an entry, with unchecked options."""
    where = f"manipulations.{name}"
    rates: list[float | None] = [None] if entry.matrix else list(entry.r if isinstance(entry.r, list) else [entry.r])
    for option in entry.options:
        if option not in declaration.options:
            known = [*declaration.options, *type(entry).model_fields]
            raise PlumblineError(f"`{where}.{option}` is not a known key; {nearest(option, known)}")
    graded = [option for option, value in entry.options.items() if isinstance(value, Mapping) and LEVELS in value]
    for draw in range(entry.draws):
        options = {
            option: _values(name, draw, option, value, declaration.options[option].type is int, where)
            for option, value in entry.options.items()
        }
        for values, r in product(product(*options.values()), rates):
            chosen = dict(zip(options, values, strict=True))
            parts = [name, *([str(draw)] if entry.draws > 1 else [])]
            parts += [f"{option}{chosen[option]:g}" for option in graded]
            parts += [f"r{r:g}"] if len(rates) > 1 else []
            visibility = {**declaration.defaults, **chosen}.get(declaration.visibility)
            level = options[graded[0]].index(chosen[graded[0]]) + 1 if graded else None
            yield Manipulated(
                variant="-".join(parts),
                name=name,
                kind=declaration.name,
                options=chosen,
                r=r,
                matrix=entry.matrix,
                classes=entry.classes[draw % len(entry.classes)] if entry.classes else None,
                draw=draw,
                level=level,
                visibility=None if visibility is None else abs(float(visibility)),
                seed=entry.seed + draw,
                datasets=tuple(datasets),
            )


def applicable_datasets(resolved: Resolved, name: str, entry: ManipulationEntry, declaration: Declaration) -> list[str]:
    """The datasets that a manipulation changes; a listed one that it cannot change is refused."""
    study, where = resolved.study, f"manipulations.{name}.datasets"
    applicable = []
    for dataset in entry.datasets if entry.datasets is not None else study.datasets:
        if dataset not in study.datasets:
            raise PlumblineError(
                f"`{where}` names '{dataset}', which is not a dataset of the study; {nearest(dataset, study.datasets)}"
            )
        has_images = resolved.declarations["dataset", dataset].task == IMAGES
        if has_images == (declaration.reads == "pixels"):
            applicable.append(dataset)
        elif entry.datasets is not None:
            what = "images" if has_images else "texts"
            raise PlumblineError(
                f"`{where}`: '{dataset}' consists of {what}, which '{declaration.name}' cannot change; remove it from "
                "the list."
            )
    if not applicable:
        raise PlumblineError(
            f"`manipulations.{name}` cannot change any dataset of this study; add a dataset of texts or images that it "
            "can, or remove it."
        )
    return applicable


def check_variants(study: Any) -> None:
    """Refuse unknown variants in the entries of datasets and models."""
    for kind in ("datasets", "models"):
        for name, entry in getattr(study, kind).items():
            check_listed(entry, f"{kind}.{name}", variants=[PLAIN, *study.manipulations])
