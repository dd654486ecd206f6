"""The expected cost of a unit of work: the median of the same work, or of the most similar work measured."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Literal

from plumbline.planning.measured import Measurement
from plumbline.planning.work import HEAVY, Work, reads_of

Basis = Literal["measured", "scaled", "guessed", "unknown"]
BASES: tuple[Basis, ...] = ("measured", "scaled", "guessed", "unknown")
# Amounts of work that differ by at most this fraction count as equal.
SAME_AMOUNT = 0.1
# Seconds that Snakemake adds to a job's own time: the median of the default study.
SNAKEMAKE_OVERHEAD = 0.18


@dataclass(frozen=True)
class Cost:
    """Expected seconds of start-up and of work, and their basis: `measured` on the same dataset, model, measure and
    amount; `scaled` from the same model and measure; `guessed` from others; or `unknown`, without any measurement."""

    startup: float
    seconds: float
    basis: Basis

    @property
    def total(self) -> float:
        """All seconds of the job."""
        return self.startup + self.seconds


class Costs:
    """Looks up costs, first in `own`, measurements of the user's runs, then in `rates`, those of the package."""

    def __init__(self, own: Iterable[Measurement], rates: Iterable[Measurement]) -> None:
        self._sources: list[dict[tuple[str, str], list[Measurement]]] = [defaultdict(list), defaultdict(list)]
        for source, measurements in zip(self._sources, (own, rates), strict=True):
            for measurement in measurements:
                source[measurement.work.work, measurement.device].append(measurement)
        self.work = cache(self._work)
        self.startup = cache(self._startup)

    def _candidates(self, work: str, device: str) -> Iterator[list[Measurement]]:
        return (source[work, device] for source in self._sources if (work, device) in source)

    def _startup(self, work: str, family: str, device: str) -> float:
        """Seconds before a job's work begins: the median of the same work and model family, or of the same work."""
        for candidates in self._candidates(work, device):
            same = [measured for measured in candidates if measured.work.family == family] or candidates
            return median(measured.startup_seconds for measured in same)
        on_device = [source[key] for source in self._sources for key in source if key[1] == device]
        return median(measured.startup_seconds for group in on_device for measured in group) if on_device else 0.0

    def _work(self, work: Work, device: str) -> tuple[float, Basis]:
        """Seconds of a unit of work, and their basis."""
        for is_similar, basis in _similar_work(work):
            for candidates in self._candidates(work.work, device):
                if similar := [measured for measured in candidates if is_similar(measured.work)]:
                    seconds = median(measured.seconds / measured.work.amount for measured in similar) * work.amount
                    amount = median(measured.work.amount for measured in similar)
                    same = abs(work.amount / amount - 1) <= SAME_AMOUNT
                    return seconds, "scaled" if basis == "measured" and not same else basis
        return 0.0, "unknown"

    def job(self, works: Sequence[Work], device: str) -> Cost:
        """The cost of a job: its start-up once, its work, and the weakest basis."""
        costs = [self.work(work, device) for work in works]
        startup = self.startup(works[0].work, works[0].family, device) + SNAKEMAKE_OVERHEAD
        return Cost(startup, sum(seconds for seconds, _ in costs), max((b for _, b in costs), key=BASES.index))


def _similar_work(work: Work) -> list[tuple[Callable[[Work], bool], Basis]]:
    """Conditions for measured work to stand in for this work, the closest first. Models of words, subwords and pixels
    stand in for each other only as a last resort."""
    if work.work not in HEAVY:
        return [(lambda other: True, "measured")]
    # A table of timings lacks the objective of an adversary, which the model's name determines.
    compared = 2 if work.work == "train" else 3
    measure, reads = work.kinds[2], reads_of(work.family)
    return [
        (lambda other: other.names[:compared] == work.names[:compared], "measured"),
        (lambda other: other.kinds[1:] == work.kinds[1:], "scaled"),
        (lambda other: other.kinds[2] == measure and other.family == work.family, "guessed"),
        (lambda other: other.kinds[2] == measure and reads_of(other.family) == reads, "guessed"),
        (lambda other: other.family == work.family, "guessed"),
        (lambda other: reads_of(other.family) == reads, "guessed"),
        (lambda other: True, "guessed"),
    ]
