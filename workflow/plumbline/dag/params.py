"""What the params of rules hold: plain sorted values of the resolved study, and hashes of the code that jobs reach."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from plumbline.config.external import CAPTUM, method_file
from plumbline.config.masking import measure_options
from plumbline.config.resolved import Resolved
from plumbline.config.runs import Runs
from plumbline.config.seeds import parse_seeds
from plumbline.dag.groups import MeasureGroups, is_masked
from plumbline.dag.paths import CellKeys, Paths
from plumbline.registry import IMAGES, Declaration, Kind
from plumbline.runtime.provenance import code_hash

SPLITS = ["train", "dev", "test"]


class Params:
    """Params of the jobs of a study. `scripts` is the folder of the rules' scripts."""

    def __init__(self, resolved: Resolved, runs: Runs, groups: MeasureGroups, paths: Paths, scripts: Path) -> None:
        self._resolved, self._runs, self._groups, self._paths, self._scripts = resolved, runs, groups, paths, scripts

    def declaration(self, kind: Kind, name: str) -> Declaration:
        """The declaration behind a name of the study."""
        if kind == "manipulation":
            name = self._resolved.manipulated[name].name
        return self._resolved.declarations[kind, name]

    def options(self, kind: Kind, name: str) -> dict[str, Any]:
        """The options of an object of the study."""
        return self._resolved.options[kind, name]

    def preparation(self, dataset: str) -> dict[str, Any]:
        """The recipe by which a dataset is prepared."""
        return self._resolved.preparations[dataset].model_dump(exclude={"embedding"})

    def embedding(self, dataset: str) -> dict[str, Any]:
        """The recipe of a dataset's word vectors."""
        return self._resolved.preparations[dataset].embedding.model_dump(exclude={"trainable"})

    def manipulation(self, variant: str) -> dict[str, Any]:
        """How a variant is made."""
        found = self._resolved.manipulated[variant]
        return {key: value for key, value in sorted(vars(found).items()) if key != "datasets"}

    def trainable(self, cell: CellKeys) -> bool:
        """Whether training moves the word vectors."""
        embedding = self._resolved.preparations[cell.dataset].embedding
        return embedding.trainable and self._paths.reads(cell.model) != "pixels"

    def training(self, cell: CellKeys) -> dict[str, Any]:
        """The recipe by which a model is trained on a dataset."""
        return self._resolved.trainings[cell.dataset, cell.model].model_dump()

    def base(self, cell: CellKeys) -> dict[str, Any]:
        """What a model's training reads of another: the objective with its strength, and the other's seed."""
        derived = self._resolved.derived.get(cell.model)
        if derived is None:
            return {}
        return {"base_seed": derived.base_seed, "objective": derived.objective, "strength": derived.strength}

    def masking(self, cell: CellKeys) -> dict[str, Any]:
        """How the words that a model is trained on are masked."""
        found = self._paths.masking(cell)
        if found is None:
            return {}
        return {
            "level": found.level,
            "unit": found.unit,
            "measure": found.measure,
            "positions": found.positions,
        }

    def measures(self, cell: CellKeys, group: str | None = None) -> dict[str, dict[str, Any]]:
        """Object and options of each measure of a job: of a group, or of all that explain a model."""
        masked = is_masked(cell.variant)
        names = self._groups.measures(cell.variant, cell.model, group) if group else self._runs.measures[cell.model]
        return {
            name: {
                "object": self._resolved.declarations["measure", name].pointer,
                "options": measure_options(self._resolved, name) if masked else self.options("measure", name),
                "splits": self._resolved.declarations["measure", name].splits,
            }
            for name in names
        }

    def explained(self, cell: CellKeys) -> list[str]:
        """The splits whose instances are explained."""
        return SPLITS if is_masked(cell.variant) else list(self._resolved.study.explain)

    def sample(self, cell: CellKeys) -> int | None:
        """How many instances of each split are explained."""
        return None if is_masked(cell.variant) else self._resolved.study.sample

    def attention(self, cell: CellKeys) -> tuple[list[int], list[str]]:
        """The seeds and splits whose attention is stored: all that a derived model reads, and of an adversary what the
        report shows, which is its first seed."""
        readers = [derived for derived in self._resolved.derived.values() if derived.base == cell.model]
        reading = [derived.base_seed for derived in readers if derived.base_block == cell.seeds]
        shown = parse_seeds(cell.seeds)[:1] if cell.model in self._resolved.derived else []
        return sorted({*reading, *shown}), SPLITS if reading else list(self._resolved.study.explain) or ["test"]

    def compared(self, protocol: str, model: str) -> list[str]:
        """The measures that a protocol reads: all of a model, or none if it queries the model alone."""
        asks = self._resolved.declarations["protocol", protocol].least_measures
        return self._runs.measures[model] if asks else []

    def data_memory(self, dataset: str) -> int:
        """MiB that the making of a dataset may take; images are held whole."""
        return 12000 if self._resolved.declarations["dataset", dataset].task == IMAGES else 4000

    def code(self, script: str, *objects: tuple[Kind, str], files: Iterable[Path] = ()) -> str:
        """The hash of all code that a script can reach, with that of the registered objects that it uses."""
        used = [self.declaration(kind, name).path for kind, name in objects]
        used += [file for kind, name in objects if kind == "measure" and (file := self._method(name))]
        return code_hash(self._scripts / f"{script}.py", *used, *files)

    def code_of_measures(self, script: str, cell: CellKeys, group: str | None = None) -> str:
        """The same of a job that computes measures."""
        measures: list[tuple[Kind, str]] = [("measure", name) for name in self.measures(cell, group)]
        return self.code(script, ("model", cell.model), *measures)

    def _method(self, measure: str) -> Path | None:
        """The study's own file with the method of a measure of Captum's kind, if there is one."""
        captum = self._resolved.declarations["measure", measure].name == CAPTUM
        return method_file(self.options("measure", measure)["method"]) if captum else None
