"""Which measures a job computes: each costly one by itself, the cheap ones of a model together.

A job that fails loses all its results, so a plug-in's measures share no job with the library's.
"""

from functools import cached_property
from itertools import count
from pathlib import Path

from plumbline.config.resolved import Resolved
from plumbline.config.runs import Runs
from plumbline.config.variants import UNMASKED
from plumbline.errors import PlumblineError
from plumbline.registry import PACKAGE

CHEAP = "cheap"


class MeasureGroups:
    """The groups of measures that share a job, by name: a measure's own, or one of cheap measures."""

    def __init__(self, resolved: Resolved, runs: Runs) -> None:
        self._resolved, self._runs = resolved, runs

    @cached_property
    def _names(self) -> dict[str, str]:
        """The group of each measure of the study."""
        of_files: dict[Path, str] = {}
        found = {}
        for measure in self._resolved.study.measures:
            declaration = self._resolved.declarations["measure", measure]
            if not declaration.cheap:
                found[measure] = measure
            elif declaration.path.is_relative_to(PACKAGE):
                found[measure] = CHEAP
            else:
                if declaration.path not in of_files:
                    # Two plug-ins may have files of one name. What else a study has does not count: another name of the
                    # group would be another file.
                    names = (f"{CHEAP}-{declaration.path.stem}-{number}" for number in count(1))
                    taken = {*self._resolved.study.measures, *of_files.values()}
                    of_files[declaration.path] = next(name for name in names if name not in taken)
                found[measure] = of_files[declaration.path]
        return found

    @cached_property
    def names(self) -> list[str]:
        """All names of groups, and of measures, which masking computes one by one."""
        return sorted({*self._names.values(), *self._names})

    def of(self, measure: str, masked: bool = False) -> str:
        """The group of a measure; where texts are masked it is alone."""
        return measure if masked else self._names[measure]

    def measures(self, variant: str, model: str, group: str) -> list[str]:
        """The measures that a job of this group computes."""
        if is_masked(variant):
            return [group]
        found = [measure for measure in self._runs.measures[model] if self._names[measure] == group]
        if not found:
            own = self._names.get(group)
            hint = f"; its importances are in '{own}.parquet'" if own and own != group else ""
            raise PlumblineError(f"No job explains model '{model}' by '{group}'{hint}.")
        return found


def is_masked(variant: str) -> bool:
    """Whether importances of a variant are asked by masking: all splits, and the gold class."""
    return variant == UNMASKED or variant.startswith(("roar/", "recursive/"))
