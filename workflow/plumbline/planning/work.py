"""What a job does, in the terms by which costs are looked up: the kind of work, its objects, and how much of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.config.resolved import Resolved
from plumbline.config.seeds import parse_seeds
from plumbline.planning.jobs import Job
from plumbline.planning.sizes import SPLITS, Size, expected, in_folder
from plumbline.registry import Kind

# Rules that do the same work.
WORKS = {
    "retrain": "train",
    "attribute_masked": "attribute",
    "attribute_together": "attribute",
    "score_models": "score",
}
# Work on a dataset whole.
DATA = ("prepare", "manipulate", "cut_into_pieces", "attend")
# Transformers of word pieces read no further than this.
LONGEST_PIECES = 512.0
HEAVY = (*DATA, "train", "attribute", "score", "trace")


@dataclass(frozen=True)
class Work:
    """A piece of work. `rows` are instances x seeds, for training x epochs; for light jobs the files that they read and
    write. Names are the study's, kinds the registered ones; `measure` may be a protocol or an adversary's objective."""

    work: str
    rows: float
    length: float = 0.0
    names: tuple[str, str, str] = ("", "", "")
    kinds: tuple[str, str, str] = ("", "", "")
    family: str = ""


def work_of(rule: str) -> str:
    """The kind of work that a rule does."""
    return WORKS.get(rule, rule)


def family(options: Mapping[str, Any], pointer: str, reads: str) -> str:
    """Models that cost alike: those that read word pieces, or pixels; of words those with the same encoder or class."""
    return str(options.get("encoder") or pointer.rpartition(":")[2]) if reads == "words" else reads


def reads_of(family: str) -> str:
    """What the models of a family read."""
    return family if family in ("pieces", "pixels") else "words"


def length_for(family: str, length: float) -> float:
    """How long a text is to models of a family."""
    return min(length, LONGEST_PIECES) if family == "pieces" else length


def pairs(count: int) -> int:
    """Pairs of so many measures, which is what agreement scores."""
    return max(count * (count - 1) // 2, 1)


class Works:
    """The pieces of work of a study's jobs."""

    def __init__(self, resolved: Resolved, results: Path) -> None:
        self.resolved, self.results = resolved, results
        self._sizes: dict[tuple[str, str], Size] = {}

    def size(self, dataset: str, variant: str) -> Size:
        """How large a variant of a dataset is."""
        if variant not in self.resolved.manipulated:
            variant = "plain"
        key = dataset, variant
        if key not in self._sizes:
            self._sizes[key] = in_folder(self.results, *key) or expected(self.resolved, *key)
        return self._sizes[key]

    def _kind(self, kind: Kind, name: str) -> str:
        declaration = self.resolved.declarations.get((kind, name))
        return declaration.name if declaration else name

    def of(self, job: Job) -> list[Work]:
        """What a job does; those that explain by several measures do several pieces."""
        work, wildcards = work_of(job.rule), job.wildcards
        dataset, model = wildcards.get("dataset", ""), wildcards.get("model", "")
        if work not in HEAVY or not dataset:
            return [Work(work, job.inputs + len(job.outputs))]
        size, study = self.size(dataset, wildcards.get("variant", "")), self.resolved.study
        seeds = len(parse_seeds(wildcards["seeds"])) if "seeds" in wildcards else 1
        rows: float = size.instances(SPLITS)
        measures = [""]
        if work == "train":
            rows = size.instances(["train"]) * seeds * self.resolved.trainings[dataset, model].epochs
            derived = self.resolved.derived.get(model)
            measures = [derived.objective or "given"] if derived else [""]
        elif work == "attribute":
            measures = [Path(path).stem for path in job.outputs if path.endswith(".parquet")]
            masked = job.rule == "attribute_masked"
            rows = size.instances(SPLITS if masked else study.explain, None if masked else study.sample) * seeds
        elif work == "score":
            measures = [wildcards["protocol"]]
            asks = self.resolved.declarations["protocol", wildcards["protocol"]].gpu
            rows = size.instances(study.explain, None if asks else study.sample) * seeds
            if self._kind("protocol", measures[0]) == "agreement":
                rows *= pairs(job.inputs - 4)
        elif work == "trace":
            rows = size.instances(study.explain, study.sample) * seeds
        kind: Kind = "protocol" if work == "score" else "measure"
        of_family = self._family(dataset, model)
        return [
            Work(
                work,
                rows,
                length_for(of_family, size.length),
                (dataset, model, measure),
                (self._kind("dataset", dataset), self._kind("model", model), self._kind(kind, measure)),
                of_family,
            )
            for measure in measures
        ]

    def _family(self, dataset: str, model: str) -> str:
        if not model:
            return ""
        declaration = self.resolved.declarations["model", model]
        return family(self.resolved.model_options[dataset, model], declaration.pointer, declaration.reads)
