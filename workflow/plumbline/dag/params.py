"""Params of rules: plain sorted values of the resolved study, and hashes of the code that jobs reach."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from plumbline.config.external import CAPTUM, IMPORTED, method_file
from plumbline.config.masking import measure_options
from plumbline.config.own_data import OWN, own_paths
from plumbline.config.resolved import Resolved
from plumbline.config.runs import Runs
from plumbline.config.seeds import parse_seeds
from plumbline.dag.groups import MeasureGroups, is_masked
from plumbline.dag.paths import CellKeys, Paths
from plumbline.registry import IMAGES, Declaration, Kind
from plumbline.runtime.provenance import code_hash, content_hash

SPLITS = ["train", "dev", "test"]


class Params:
    """Params of the jobs of a study; `scripts` is the folder of the scripts."""

    def __init__(self, resolved: Resolved, runs: Runs, groups: MeasureGroups, paths: Paths, scripts: Path) -> None:
        self._resolved, self._runs, self._groups, self._paths, self._scripts = resolved, runs, groups, paths, scripts
        self._contents: dict[str, str] = {}

    def declaration(self, kind: Kind, name: str) -> Declaration:
        """The declaration of an object of the study."""
        if kind == "manipulation":
            name = self._resolved.manipulated[name].name
        return self._resolved.declarations[kind, name]

    def options(self, kind: Kind, name: str) -> dict[str, Any]:
        """The options of an object of the study."""
        return self._resolved.options[kind, name]

    def preparation(self, dataset: str) -> dict[str, Any]:
        """The preparation recipe of a dataset."""
        return self._resolved.preparations[dataset].model_dump(exclude={"embedding"})

    def embedding(self, dataset: str) -> dict[str, Any]:
        """The recipe of a dataset's word vectors."""
        return self._resolved.preparations[dataset].embedding.model_dump(exclude={"trainable"})

    def content(self, dataset: str) -> str:
        """The hash of the user's own data, so that a changed file reruns what depends on it; empty for other datasets.

        The publishers' files do not change.
        """
        if dataset not in self._contents:
            kind = self._resolved.declarations["dataset", dataset].name
            paths = own_paths(kind, self.options("dataset", dataset)) if kind in OWN else []
            self._contents[dataset] = content_hash(*paths) if paths else ""
        return self._contents[dataset]

    def manipulation(self, variant: str) -> dict[str, Any]:
        """How a manipulated variant is made."""
        fields = sorted(vars(self._resolved.manipulated[variant]).items())
        return {key: value for key, value in fields if key != "datasets"}

    def trainable(self, cell: CellKeys) -> bool:
        """Whether training updates the word vectors."""
        embedding = self._resolved.preparations[cell.dataset].embedding
        return embedding.trainable and self._paths.reads(cell.model) != "pixels"

    def training(self, cell: CellKeys) -> dict[str, Any]:
        """The training recipe of a model on a dataset."""
        return self._resolved.trainings[cell.dataset, cell.model].model_dump()

    def base(self, cell: CellKeys) -> dict[str, Any]:
        """The objective and strength of a derived model, and the seed of its base model; empty for other models."""
        derived = self._resolved.derived.get(cell.model)
        if derived is None:
            return {}
        return {"base_seed": derived.base_seed, "objective": derived.objective, "strength": derived.strength}

    def masking(self, cell: CellKeys) -> dict[str, Any]:
        """How the words that a model is trained on are masked; empty if they are not."""
        masked = self._paths.masking(cell)
        return {key: getattr(masked, key) for key in ("level", "unit", "measure", "positions")} if masked else {}

    def measures(self, cell: CellKeys, group: str | None = None) -> dict[str, dict[str, Any]]:
        """Object, options and splits of each measure of a group, or of all measures that explain a model."""
        masked = is_masked(cell.variant)
        names = self._groups.measures(cell.variant, cell.model, group) if group else self._runs.measures[cell.model]
        return {name: self._measure(name, masked) for name in names}

    def _measure(self, name: str, masked: bool) -> dict[str, Any]:
        declaration = self._resolved.declarations["measure", name]
        bases = {base: self._measure(base, masked) for base in self._bases(name)}
        return {
            "object": declaration.pointer,
            "options": measure_options(self._resolved, name) if masked else self.options("measure", name),
            "splits": [*declaration.splits, *(split for base in bases.values() for split in base["splits"])],
            "bases": bases,
        }

    def _bases(self, measure: str) -> list[str]:
        """The measures of the study that a measure reads."""
        base = self._resolved.base_of(measure)
        return [base] if base != measure else []

    def recomputed(self, protocol: str, cell: CellKeys) -> dict[str, dict[str, Any]]:
        """The measures that a protocol computes itself; imported importances cannot be."""
        if not self.declaration("protocol", protocol).recomputes:
            return {}
        kinds = {name: self.declaration("measure", self._resolved.base_of(name)).name for name in self.measures(cell)}
        return {
            name: {**measure, "stochastic": self._is_stochastic(name)}
            for name, measure in self.measures(cell).items()
            if kinds[name] != IMPORTED
        }

    def _is_stochastic(self, measure: str) -> bool:
        """Whether the scores of a measure, or of one that it reads, depend on random draws."""
        return any(self.declaration("measure", name).stochastic for name in (measure, *self._bases(measure)))

    def code_of_protocol(self, protocol: str, cell: CellKeys) -> str:
        """The hash of the code of a job that scores a cell."""
        return self.code(
            "score", ("model", cell.model), ("protocol", protocol), *self._objects(self.recomputed(protocol, cell))
        )

    def explained_splits(self, cell: CellKeys) -> list[str]:
        """The splits whose instances are explained."""
        return SPLITS if is_masked(cell.variant) else list(self._resolved.study.explain)

    def sample(self, cell: CellKeys) -> int | None:
        """The number of sampled instances of each split; None for all."""
        return None if is_masked(cell.variant) else self._resolved.study.sample

    def attention(self, cell: CellKeys) -> tuple[list[int], list[str]]:
        """The seeds and splits whose attention is stored: those that derived models read, and the first seed of an
        adversary, which the report shows."""
        read = [
            derived.base_seed
            for derived in self._resolved.derived.values()
            if derived.base == cell.model and self._resolved.base_block(derived.name, cell.dataset) == cell.seeds
        ]
        shown = parse_seeds(cell.seeds)[:1] if cell.model in self._resolved.derived else []
        return sorted({*read, *shown}), SPLITS if read else list(self._resolved.study.explain) or ["test"]

    def compared(self, protocol: str, model: str) -> list[str]:
        """The measures that a protocol reads: all of a model, or none if it only queries the model."""
        needs_measures = self._resolved.declarations["protocol", protocol].least_measures
        return self._runs.measures[model] if needs_measures else []

    def data_memory(self, dataset: str) -> int:
        """The memory in MiB for preparing a dataset; images are held in memory."""
        return 12000 if self._resolved.declarations["dataset", dataset].task == IMAGES else 4000

    def code(self, script: str, *objects: tuple[Kind, str], files: Iterable[Path] = ()) -> str:
        """The hash of all code that a script and the registered objects it uses can reach."""
        used = [self.declaration(kind, name).path for kind, name in objects]
        used += [file for kind, name in objects if kind == "measure" and (file := self._method(name))]
        return code_hash(self._scripts / f"{script}.py", *used, *files)

    def code_of_measures(self, script: str, cell: CellKeys, group: str | None = None) -> str:
        """The same for a job that computes measures."""
        return self.code(script, ("model", cell.model), *self._objects(self.measures(cell, group)))

    def _objects(self, measures: Iterable[str]) -> list[tuple[Kind, str]]:
        """The registered objects of measures and of those that they read."""
        return [("measure", name) for measure in measures for name in (measure, *self._bases(measure))]

    def _method(self, measure: str) -> Path | None:
        """The study's own file that defines the method of a `captum` measure, if any."""
        captum = self._resolved.declarations["measure", measure].name == CAPTUM
        return method_file(self.options("measure", measure)["method"]) if captum else None
