"""The work of a job, as costs are looked up: its kind, its dataset, model and measure, and its amount."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.config.resolved import Resolved
from plumbline.config.runs import list_runs
from plumbline.config.seeds import parse_seeds
from plumbline.dag.groups import MeasureGroups, is_masked
from plumbline.planning.jobs import PlannedJob
from plumbline.planning.sizes import SPLITS, Size, expected_size, stored_size
from plumbline.registry import Kind, Registry

# Rules that do the same work.
WORKS = {
    "retrain": "train",
    "attribute_masked": "attribute",
    "attribute_part": "attribute",
    "join_importances": "summarise",
    "join_masked_importances": "summarise",
    "score_models": "score",
}
# Work on a whole dataset.
DATA = ("prepare", "manipulate", "tokenize_subwords", "extract_attention")
# Subword transformers truncate texts to this length.
LONGEST_SUBWORDS = 512.0
HEAVY = (*DATA, "train", "attribute", "score", "trace")
# Measures with a forward pass per word: their cost grows with the length of the texts, as that of all explanations of
# transformers does; that of other work with its square root, since long texts fill batches better.
PER_WORD = ("leave-one-out", "occlusion", "attention-flow")
# Tokens of a text of unknown length.
TYPICAL = 30.0


@dataclass(frozen=True)
class Work:
    """A unit of work. `rows` are instances x seeds, for training x epochs. `names` are the study's names of dataset,
    model and measure, `kinds` the registered ones; a measure may be a protocol or an adversary's objective. Light work
    has only its kind."""

    work: str
    rows: float = 1.0
    length: float = 1.0
    names: tuple[str, str, str] = ("", "", "")
    kinds: tuple[str, str, str] = ("", "", "")
    family: str = ""

    @property
    def amount(self) -> float:
        """The amount of work, which its seconds are proportional to."""
        linear = self.kinds[2] in PER_WORD or (self.work == "attribute" and self.family == "subwords")
        return self.rows * (self.length or TYPICAL) ** (1.0 if linear else 0.5)


def kind_of_work(rule: str) -> str:
    """The kind of work that a rule does."""
    return WORKS.get(rule, rule)


def family(options: Mapping[str, Any], pointer: str, reads: str) -> str:
    """The group of models with similar costs: readers of subwords, of pixels, or of words with the same encoder."""
    return str(options.get("encoder") or pointer.rpartition(":")[2]) if reads == "words" else reads


def reads_of(family: str) -> str:
    """The input of a family's models: words, subwords or pixels."""
    return family if family in ("subwords", "pixels") else "words"


def length_for(family: str, length: float) -> float:
    """The length of a text for models of a family."""
    return min(length, LONGEST_SUBWORDS) if family == "subwords" else length


def count_pairs(count: int) -> int:
    """The number of pairs of `count` measures, which agreement scores."""
    return max(count * (count - 1) // 2, 1)


class Works:
    """The work of a study's jobs."""

    def __init__(self, resolved: Resolved, results: Path) -> None:
        self.resolved, self.results = resolved, results
        self._sizes: dict[tuple[str, str], Size] = {}
        self._registry = Registry()
        self._runs = list_runs(resolved)
        self._groups = MeasureGroups(resolved, self._runs)

    def size(self, dataset: str, variant: str) -> Size:
        """The size of a variant of a dataset."""
        if variant not in self.resolved.manipulated:
            variant = "plain"
        key = dataset, variant
        if key not in self._sizes:
            self._sizes[key] = stored_size(self.results, *key) or expected_size(self.resolved, *key)
        return self._sizes[key]

    def kinds(self, work: str, names: tuple[str, str, str]) -> tuple[str, str, str]:
        """The registered names of the study's names; an unknown name stays."""

        def kind_of(kind: Kind, name: str) -> str:
            declaration = self.resolved.declarations.get((kind, name))
            return declaration.name if declaration else name

        dataset, model, measure = names
        last: Kind = "protocol" if work == "score" else "measure"
        return kind_of("dataset", dataset), kind_of("model", model), kind_of(last, measure)

    def of_job(self, job: PlannedJob) -> list[Work]:
        """The work of a job: one unit, or one per measure that it computes."""
        work, wildcards = kind_of_work(job.rule), job.wildcards
        dataset, model = wildcards.get("dataset", ""), wildcards.get("model", "")
        if work == "table":
            # Tables of protocols cost alike; the cost of others depends on their name.
            work = "summarise" if wildcards["table"] in self.resolved.study.protocols else wildcards["table"]
        if work not in HEAVY or not dataset:
            return [Work(work)]
        size, study = self.size(dataset, wildcards.get("variant", "")), self.resolved.study
        seeds = len(parse_seeds(wildcards["seeds"])) if "seeds" in wildcards else 1
        rows: float = size.instances(SPLITS)
        measures = [""]
        if work == "train":
            rows = size.instances(["train"]) * seeds * self.resolved.trainings[dataset, model].epochs
            derived = self.resolved.derived.get(model)
            measures = [derived.objective or "given"] if derived else [""]
        elif work == "attribute":
            # Permuting the scores of a measure takes no time.
            grouped = self._groups.measures(wildcards["variant"], model, wildcards["measures"])
            measures = list(dict.fromkeys(map(self.resolved.base_of, grouped)))
            masked = is_masked(wildcards["variant"])
            rows = size.instances(SPLITS if masked else study.explain, None if masked else study.sample) * seeds
            rows /= int(wildcards.get("part", "1-of-1").rpartition("-")[2])
        elif work == "score":
            measures = [wildcards["protocol"]]
            protocol = self.resolved.declarations["protocol", wildcards["protocol"]]
            rows = size.instances(study.explain, None if protocol.gpu else study.sample) * seeds
            options = self.resolved.options["protocol", wildcards["protocol"]]
            if protocol.name == "agreement":
                rows *= count_pairs(len(self._runs.measures[model]))
            elif protocol.recomputes and options.get("recompute", True):
                # Most of its time is that of the measures, which it computes once, or once for each level.
                work, measures = "attribute", self._runs.measures[model]
                rows = size.instances(study.explain, study.sample) * seeds * len(options.get("levels", [0]))
        elif work == "trace":
            rows = size.instances(study.explain, study.sample) * seeds
        model_family = self.family(dataset, model)
        length, all_names = length_for(model_family, size.length), [(dataset, model, measure) for measure in measures]
        return [Work(work, rows, length, names, self.kinds(work, names), model_family) for names in all_names]

    def is_splittable(self, job: PlannedJob) -> bool:
        """Whether a job explains instances that may be split over several jobs."""
        return kind_of_work(job.rule) == "attribute" and job.wildcards["measures"] in self._groups.splittable

    def compares_seeds(self, dataset: str) -> bool:
        """Whether a protocol compares the seeds of a block on a dataset, so that the block must stay whole."""
        return any(
            self.resolved.declarations["protocol", protocol].least_seeds > 1
            and dataset in {cell.dataset for cell in cells}
            for protocol, cells in self._runs.scored.items()
        )

    def family(self, dataset: str, model: str) -> str:
        """The family of a model of the study, or of a registered one."""
        if ("model", model) in self.resolved.declarations:
            declaration = self.resolved.declarations["model", model]
            return family(self.resolved.model_options.get((dataset, model), {}), declaration.pointer, declaration.reads)
        if model not in self._registry.names("model"):
            return ""
        declaration = self._registry.get("model", model)
        return family(declaration.defaults, declaration.pointer, declaration.reads)
