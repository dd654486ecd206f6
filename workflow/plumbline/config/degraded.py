"""Degraded measures: one entry of the config stands for a measure per base measure and share of permuted scores."""

from dataclasses import replace
from typing import Any

from pydantic import Field, ValidationError, field_validator

from plumbline.config.entries import MeasureEntry, ModelEntry, RoarEntry
from plumbline.config.messages import validation_message
from plumbline.config.recipes import Recipe
from plumbline.config.resolved import Resolved
from plumbline.config.schema import DEGRADED, Study
from plumbline.errors import PlumblineError, nearest
from plumbline.registry import covered, needed


class DegradedEntry(Recipe):
    """The base measures of an entry and the shares of their scores that are permuted."""

    of: list[str] = Field(min_length=1)
    share: list[float] = Field(min_length=1)

    @field_validator("of", "share", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        return value if isinstance(value, list) else [value]

    @field_validator("share")
    @classmethod
    def _shares(cls, value: list[float]) -> list[float]:
        if not all(0 <= share <= 1 for share in value) or len(set(value)) < len(value):
            raise ValueError("it must be a number from 0 to 1 or a list of different such numbers")
        return value


def expand_degraded(study: Study) -> Study:
    """The study with a measure `MEASURE.ENTRY.SHARE` for each base and share of an entry, after the base. In lists of
    measures the name of the entry stands for all of them."""
    bases = [name for name in study.measures if name not in study.degraded]
    ladders = {name: _rungs(name, entry, bases) for name, entry in study.degraded.items()}
    measures: dict[str, MeasureEntry] = {}
    for base in bases:
        measures[base] = study.measures[base]
        for name, rungs in ladders.items():
            own = {rung: entry for rung, entry in rungs.items() if entry.options["of"] == base}
            for rung in own.keys() & {*measures, *bases}:
                raise PlumblineError(f"`measures.{name}`: two measures are named '{rung}'; rename one.")
            measures |= own

    def listed(entry: ModelEntry | RoarEntry) -> Any:
        names = entry.measures and [rung for name in entry.measures for rung in ladders.get(name, [name])]
        return entry.model_copy(update={"measures": names and list(dict.fromkeys(names))})

    models, roar = ({key: listed(entry) for key, entry in part.items()} for part in (study.models, study.roar))
    return study.model_copy(update={"measures": measures, "models": models, "roar": roar})


def _rungs(name: str, entry: MeasureEntry, bases: list[str]) -> dict[str, MeasureEntry]:
    """The measures of an entry by name."""
    where = f"measures.{name}"
    try:
        ladder = DegradedEntry(**entry.options)
    except ValidationError as error:
        raise PlumblineError(validation_message(error, where, DegradedEntry)) from None
    for base in ladder.of:
        if base not in bases:
            raise PlumblineError(
                f"`{where}.of` names '{base}', which is not a measure of the study; {nearest(base, bases)}"
            )
    return {
        _rung_name(name, base, share): MeasureEntry.model_validate({"kind": DEGRADED, "of": base, "share": share})
        for base in ladder.of
        for share in ladder.share
    }


def _rung_name(entry: str, base: str, share: float) -> str:
    """The name of a degraded measure; an entry of a study that is resolved already, as in a manifest, has it."""
    has_name = entry.startswith(f"{base}.") and entry.endswith(f".{share:g}")
    return entry if has_name else f"{base}.{entry}.{share:g}"


def inherit_declarations(resolved: Resolved) -> None:
    """A degraded measure needs, covers and explains what its base does with its options."""
    for measure in resolved.study.degraded:
        base, own = resolved.base_of(measure), resolved.declarations["measure", measure]
        declaration, options = resolved.declarations["measure", base], resolved.options["measure", base]
        inherited = {
            "needs": sorted(needed(declaration, options)),
            "covers": sorted(covered(declaration, options)),
            "splits": declaration.splits,
            "pixels": declaration.pixels,
        }
        resolved.declarations["measure", measure] = replace(own, facts=own.facts | inherited)
