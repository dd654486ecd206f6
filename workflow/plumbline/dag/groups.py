"""Groups of measures that share a job: costly measures are alone, the cheap ones of a model together, and those that
read another measure with it.

A job that fails loses all its results, so measures of a plug-in do not share a job with those of the library.
"""

from functools import cached_property
from itertools import count
from pathlib import Path

from plumbline.config.external import IMPORTED
from plumbline.config.resolved import Resolved
from plumbline.config.runs import Runs
from plumbline.config.variants import UNMASKED
from plumbline.errors import PlumblineError
from plumbline.registry import PACKAGE

CHEAP = "cheap"


class MeasureGroups:
    """The groups of measures that share a job; a costly measure is a group of its own name."""

    def __init__(self, resolved: Resolved, runs: Runs) -> None:
        self._resolved, self._runs = resolved, runs

    @cached_property
    def _names(self) -> dict[str, str]:
        """The group of each measure of the study."""
        plugin_groups: dict[Path, str] = {}
        groups = {}
        for measure in self._resolved.study.measures:
            declaration = self._resolved.declarations["measure", measure]
            if not declaration.cheap:
                groups[measure] = measure
            elif declaration.path.is_relative_to(PACKAGE):
                groups[measure] = CHEAP
            else:
                if declaration.path not in plugin_groups:
                    # Two plug-ins may have the same file name. The name must not depend on other measures of the study,
                    # because it is a file name.
                    names = (f"{CHEAP}-{declaration.path.stem}-{number}" for number in count(1))
                    taken = {*self._resolved.study.measures, *plugin_groups.values()}
                    plugin_groups[declaration.path] = next(name for name in names if name not in taken)
                groups[measure] = plugin_groups[declaration.path]
        return {measure: groups[self._resolved.base_of(measure)] for measure in groups}

    @cached_property
    def names(self) -> list[str]:
        """All names of groups and of measures; masking computes each measure in its own job."""
        return sorted({*self._names.values(), *self._names})

    @cached_property
    def splittable(self) -> list[str]:
        """The groups whose instances may be split over jobs: costly measures that score each instance by itself."""
        of = {name: self._resolved.declarations["measure", self._resolved.base_of(name)] for name in self._names}
        return [
            name
            for name, declaration in of.items()
            if not (declaration.cheap or declaration.whole or declaration.splits or declaration.name == IMPORTED)
        ]

    def of(self, measure: str, masked: bool = False) -> str:
        """The group of a measure; for masking, the measure itself."""
        return measure if masked else self._names[measure]

    def measures(self, variant: str, model: str, group: str) -> list[str]:
        """The measures that a job of this group computes."""
        if is_masked(variant):
            return [group]
        measures = [measure for measure in self._runs.measures[model] if self._names[measure] == group]
        if not measures:
            shared = self._names.get(group)
            hint = f"; its importances are in '{shared}.parquet'" if shared and shared != group else ""
            raise PlumblineError(f"No job explains model '{model}' with '{group}'{hint}.")
        return measures


def is_masked(variant: str) -> bool:
    """Whether the importances of a variant are for masking: those of all splits, and of the target class of ROAR."""
    return variant == UNMASKED or variant.startswith(("roar/", "recursive/"))
