"""ROAR and Recursive ROAR: the variants of a dataset with words masked by importance, and the variant whose models'
importances choose these words."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from plumbline.config.entries import RoarEntry
from plumbline.config.external import IMPORTED
from plumbline.config.resolved import Resolved, check_listed
from plumbline.config.variants import PLAIN, POSITIONS
from plumbline.errors import PlumblineError

LEVELS: dict[str, list[int]] = {"relative": list(range(10, 100, 10)), "absolute": list(range(1, 11))}
# The relative level at which all words are masked.
ALL = 100


@dataclass(frozen=True, order=True)
class Masked:
    """A variant with masked words. `below` is the variant whose models' importances choose these words; with
    `positions`, the texts hold nothing but the positions of masked words."""

    variant: str
    unit: str
    measure: str
    level: int
    below: str
    positions: bool = False

    @property
    def masks_all(self) -> bool:
        """Whether all words of every text are masked."""
        return self.unit == "relative" and self.level == ALL

    @property
    def masks(self) -> str:
        """The variant with the same masks and the words kept."""
        return self.variant.removeprefix(POSITIONS)


@dataclass(frozen=True)
class Point:
    """A point of a masking curve and its variant, which several curves may share."""

    strategy: str
    unit: str
    measure: str
    level: int
    variant: str
    positions: bool = False


def check_roar(resolved: Resolved) -> None:
    """Refuse invalid ROAR entries before any job runs."""
    study = resolved.study
    if len({entry.target for entry in study.roar.values()}) > 1:
        raise PlumblineError(
            "`roar.relative.target` and `roar.absolute.target` differ; set both to the same value, because both mask "
            "by the same importances."
        )
    for unit, entry in study.roar.items():
        where = f"roar.{unit}"
        check_listed(entry, where, measures=study.measures, models=study.models, datasets=study.datasets)
        if unit == "relative" and max(entry.levels or [0]) > ALL:
            raise PlumblineError(f"`{where}.levels` contains {max(entry.levels or [])}; a percentage is at most 100.")
        if entry.levels is not None and not {*entry.levels} - {ALL if unit == "relative" else 0}:
            raise PlumblineError(
                f"`{where}.levels` is {entry.levels}; add a level of 1 or more, which must be below 100 for "
                "`roar.relative`."
            )
        if not baseline(resolved):
            raise PlumblineError(f"`{where}`: ROAR compares with random masking; add `random` to `measures`.")
        for model in entry.models or []:
            if study.models[model].attention_of:
                raise PlumblineError(
                    f"`{where}.models`: model '{model}' takes its attention from another model; remove it."
                )
        for measure in entry.measures or study.measures:
            read = resolved.declarations["measure", resolved.base_of(measure)].name
            if "recursive" in entry.strategies and read == IMPORTED:
                raise PlumblineError(
                    f"`{where}` masks recursively, which needs importances of every retrained model, but '{measure}' "
                    "reads them from a file; set `strategies: [roar]` or list other `measures`."
                )


def baseline(resolved: Resolved) -> str:
    """The study's name of the random measure; of several, the first."""
    kinds = {name: resolved.declarations["measure", name].name for name in resolved.study.measures}
    return next((name for name, kind in kinds.items() if kind == "random"), "")


def curve(strategy: str, unit: str, entry: RoarEntry, measure: str, random: str) -> list[Masked]:
    """The variants of a measure, level by level; for relative levels, all words masked is the last.

    The first level of the recursive strategy and every level of random masking are shared with the strategy `roar`.
    """
    below, variants = PLAIN, []
    for level in entry.levels or LEVELS[unit]:
        if unit == "relative" and level == ALL:
            continue
        by = "roar" if below == PLAIN else "recursive"
        variants.append(Masked(f"{by}/{unit}/{measure}/{level}", unit, measure, level, below))
        if strategy == "recursive" and measure != random:
            below = variants[-1].variant
    return [*variants, all_masked(random)] if unit == "relative" else variants


def all_masked(random: str) -> Masked:
    """The variant with all words masked, which all measures share."""
    return Masked(f"roar/relative/{random}/{ALL}", "relative", random, ALL, PLAIN)


def _positions(variants: Iterable[Masked]) -> list[Masked]:
    """The variants that hold only positions; with all words masked, positions hold no information."""
    return [
        replace(masked, variant=f"{POSITIONS}{masked.variant}", positions=True)
        for masked in variants
        if not masked.masks_all
    ]


def masked_variants(unit: str, entry: RoarEntry, measures: Sequence[str], random: str) -> list[Masked]:
    """The distinct variants of a dataset for a model with these measures."""
    curves = [curve(strategy, unit, entry, measure, random) for strategy in entry.strategies for measure in measures]
    variants = dict.fromkeys([*chain.from_iterable(curves), all_masked(random)])
    return [*variants, *_positions([_unmasked(unit), *variants])] if entry.leakage else list(variants)


def _unmasked(unit: str) -> Masked:
    return Masked(PLAIN, unit, "", 0, PLAIN)


def points(unit: str, entry: RoarEntry, measures: Sequence[str], random: str) -> Iterator[Point]:
    """The points of all curves, from no words masked to, for relative levels, all words masked."""
    for strategy in entry.strategies:
        for measure in measures:
            variants = [_unmasked(unit), *curve(strategy, unit, entry, measure, random)]
            for masked in [*variants, *_positions(variants)] if entry.leakage else variants:
                yield Point(strategy, unit, measure, masked.level, masked.variant, masked.positions)
        # All words masked is the reference of all curves, absolute ones included.
        yield Point(strategy, "relative", random, ALL, all_masked(random).variant)


def measure_options(resolved: Resolved, measure: str) -> dict[str, Any]:
    """A measure's options, with the target class of ROAR."""
    (target,) = {entry.target for entry in resolved.study.roar.values()}
    options = resolved.options["measure", measure]
    return {**options, "target": target} if "target" in options else options
