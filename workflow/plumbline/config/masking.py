"""Words masked by their importance and models trained anew (ROAR, Recursive ROAR): the variants that this makes of a
dataset, and which models' importances each of them rests on."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plumbline.config.external import IMPORTED
from plumbline.config.resolved import Resolved
from plumbline.config.schema import RoarEntry
from plumbline.config.variants import PLAIN, POSITIONS
from plumbline.errors import PlumblineError, nearest

LEVELS: dict[str, list[int]] = {"relative": list(range(10, 100, 10)), "absolute": list(range(1, 11))}
# The texts as they are, and the importances of the models that learned them, with which all masking begins.
ALL = 100


@dataclass(frozen=True, order=True)
class Masked:
    """A variant in which words are masked. `below` is the variant whose models' importances choose them; `positions`
    says that which words are masked is all that is left of the texts."""

    variant: str
    unit: str
    measure: str
    level: int
    below: str
    positions: bool = False

    @property
    def whole(self) -> bool:
        """Whether all words are masked, whatever the text."""
        return self.unit == "relative" and self.level == ALL

    @property
    def masks(self) -> str:
        """The variant whose masks these are."""
        return self.variant.removeprefix(POSITIONS)


@dataclass(frozen=True)
class Point:
    """A point of a curve: the variant that it stands on, which several curves may share."""

    strategy: str
    unit: str
    measure: str
    level: int
    variant: str
    positions: bool = False


def check_roar(resolved: Resolved) -> None:
    """Refuse what cannot be, before any work."""
    study = resolved.study
    if len({entry.target for entry in study.roar.values()}) > 1:
        raise PlumblineError("`roar.relative.target` and `roar.absolute.target` differ; they mask by the same scores.")
    for unit, entry in study.roar.items():
        where = f"roar.{unit}"
        for key, known in (("measures", study.measures), ("models", study.models), ("datasets", study.datasets)):
            for word in getattr(entry, key) or []:
                if word not in known:
                    raise PlumblineError(f"`{where}.{key}` names '{word}'; {nearest(word, known)}")
        if unit == "relative" and max(entry.levels or [0]) > ALL:
            raise PlumblineError(f"`{where}.levels` holds {max(entry.levels or [])}; it is percent, 100 at most.")
        if entry.levels is not None and not {*entry.levels} - {ALL if unit == "relative" else 0}:
            raise PlumblineError(f"`{where}.levels` is {entry.levels}; name at least one, below 100 if it is percent.")
        if not baseline(resolved):
            raise PlumblineError(f"`{where}`: masking is compared with masking at random; add `random` to `measures`.")
        for model in entry.models or []:
            if study.models[model].attention_of:
                raise PlumblineError(f"`{where}.models`: the attention of model '{model}' is another's.")
        for measure in entry.measures or study.measures:
            if "recursive" in entry.strategies and resolved.declarations["measure", measure].name == IMPORTED:
                raise PlumblineError(
                    f"`{where}` masks recursively, which needs importances of every model that is trained anew, and "
                    f"those of '{measure}' are a file's; set `strategies: [roar]`, or name other `measures`."
                )


def baseline(resolved: Resolved) -> str:
    """The study's name of the measure that masks at random; of several, the first."""
    kinds = {name: resolved.declarations["measure", name].name for name in resolved.study.measures}
    return next((name for name, kind in kinds.items() if kind == "random"), "")


def curve(strategy: str, unit: str, entry: RoarEntry, measure: str, random: str) -> list[Masked]:
    """The variants of a measure, level by level; for relative levels the last is that of everything.

    The first level of the recursive strategy is that of the other, and so is every level of random masking.
    """
    below, found = PLAIN, []
    for level in entry.levels or LEVELS[unit]:
        if unit == "relative" and level == ALL:
            continue
        by = "roar" if below == PLAIN else "recursive"
        found.append(Masked(f"{by}/{unit}/{measure}/{level}", unit, measure, level, below))
        if strategy == "recursive" and measure != random:
            below = found[-1].variant
    return [*found, everything(random)] if unit == "relative" else found


def everything(random: str) -> Masked:
    """The variant in which all words are masked, whatever measure there is."""
    return Masked(f"roar/relative/{random}/{ALL}", "relative", random, ALL, PLAIN)


def _positions(levels: Iterable[Masked]) -> list[Masked]:
    """The variants of which only positions are left; where everything is masked, none says anything."""
    return [replace(one, variant=f"{POSITIONS}{one.variant}", positions=True) for one in levels if not one.whole]


def masked_variants(unit: str, entry: RoarEntry, measures: Sequence[str], random: str) -> list[Masked]:
    """The variants of a dataset for a model with these measures, each once."""
    curves = [curve(strategy, unit, entry, measure, random) for strategy in entry.strategies for measure in measures]
    found = dict.fromkeys([*(one for levels in curves for one in levels), everything(random)])
    return [*found, *_positions([_nothing(unit), *found])] if entry.leakage else list(found)


def _nothing(unit: str) -> Masked:
    return Masked(PLAIN, unit, "", 0, PLAIN)


def points(unit: str, entry: RoarEntry, measures: Sequence[str], random: str) -> Iterator[Point]:
    """The points of all curves, from nothing masked to, for relative levels, everything."""
    for strategy in entry.strategies:
        for measure in measures:
            levels = [_nothing(unit), *curve(strategy, unit, entry, measure, random)]
            for one in [*levels, *_positions(levels)] if entry.leakage else levels:
                yield Point(strategy, unit, measure, one.level, one.variant, one.positions)
        # Everything masked is what all curves are measured against, those of numbers of words too.
        yield Point(strategy, "relative", random, ALL, everything(random).variant)


def measure_options(resolved: Resolved, measure: str) -> dict[str, Any]:
    """A measure's options, with the class that masking explains."""
    (target,) = {entry.target for entry in resolved.study.roar.values()}
    options = resolved.options["measure", measure]
    return {**options, "target": target} if "target" in options else options
