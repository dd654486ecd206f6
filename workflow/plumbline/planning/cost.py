"""What a subword of work will cost: the median of the same work, or of the nearest work that was measured."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Literal

from plumbline.planning.measured import Measured
from plumbline.planning.work import HEAVY, Work, reads_of

Basis = Literal["measured", "scaled", "guessed", "unknown"]
BASES: tuple[Basis, ...] = ("measured", "scaled", "guessed", "unknown")
# Work is the same if it is as large, give or take this share.
ALIKE = 0.1
# Seconds that Snakemake spends on a job beside its own time: the median of the default study.
AROUND = 0.18


@dataclass(frozen=True)
class Cost:
    """Expected seconds, start-up apart, and what they rest on: `measured` of the same dataset, model and measure and as
    large; `scaled` from the same model and measure; `guessed` from other ones; or `unknown`, where nothing was."""

    startup: float
    seconds: float
    basis: Basis


class Costs:
    """Looks up costs. `own` are timings of the user's runs, which count before `rates`, those of the package."""

    def __init__(self, own: Iterable[Measured], rates: Iterable[Measured]) -> None:
        self._sources: list[dict[tuple[str, str], list[Measured]]] = [defaultdict(list), defaultdict(list)]
        for source, found in zip(self._sources, (own, rates), strict=True):
            for one in found:
                source[one.work.work, one.device].append(one)
        self.work = cache(self._work)
        self.startup = cache(self._startup)

    def _candidates(self, work: str, device: str) -> Iterator[list[Measured]]:
        return (source[work, device] for source in self._sources if (work, device) in source)

    def _startup(self, work: str, family: str, device: str) -> float:
        """Seconds before a job's work begins: the median of the same work and kind of model, or of the same work."""
        for found in self._candidates(work, device):
            alike = [one for one in found if one.work.family == family] or found
            return median(one.startup_seconds for one in alike)
        every = [source[key] for source in self._sources for key in source if key[1] == device]
        return median(one.startup_seconds for ones in every for one in ones) if every else 0.0

    def _work(self, work: Work, device: str) -> tuple[float, Basis]:
        """Seconds of a subword of work, and what they rest on."""
        for alike, basis in _relatives(work):
            for found in self._candidates(work.work, device):
                if near := [one for one in found if alike(one.work)]:
                    seconds = median(one.seconds / one.work.amount for one in near) * work.amount
                    same = abs(work.amount / median(one.work.amount for one in near) - 1) <= ALIKE
                    return seconds, "scaled" if basis == "measured" and not same else basis
        return 0.0, "unknown"

    def job(self, works: Sequence[Work], device: str) -> Cost:
        """A whole job: the start-up once, its work, and the weakest of what these rest on."""
        costs = [self.work(work, device) for work in works]
        startup = self.startup(works[0].work, works[0].family, device) + AROUND
        return Cost(startup, sum(seconds for seconds, _ in costs), max((b for _, b in costs), key=BASES.index))


def _relatives(work: Work) -> list[tuple[Callable[[Work], bool], Basis]]:
    """Which measured work may stand for this one, the nearest first. Models of words, subwords and pixels stand for
    each other only if there is nothing else."""
    if work.work not in HEAVY:
        return [(lambda one: True, "measured")]
    # A table of timings does not tell the objective of an adversary, but its name does.
    told = 2 if work.work == "train" else 3
    measure, reads = work.kinds[2], reads_of(work.family)
    return [
        (lambda one: one.names[:told] == work.names[:told], "measured"),
        (lambda one: one.kinds[1:] == work.kinds[1:], "scaled"),
        (lambda one: one.kinds[2] == measure and one.family == work.family, "guessed"),
        (lambda one: one.kinds[2] == measure and reads_of(one.family) == reads, "guessed"),
        (lambda one: one.family == work.family, "guessed"),
        (lambda one: reads_of(one.family) == reads, "guessed"),
        (lambda one: True, "guessed"),
    ]
