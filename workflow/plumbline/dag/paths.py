"""Paths of the artefacts of a study, and which of them a job reads."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from plumbline.config.external import IMPORTED, locate
from plumbline.config.masking import Masked
from plumbline.config.resolved import Resolved
from plumbline.config.runs import Cell, Runs
from plumbline.config.variants import PLAIN, UNMASKED
from plumbline.dag.groups import MeasureGroups, is_masked


class CellKeys(Protocol):
    """A cell, or the wildcards of one."""

    @property
    def dataset(self) -> str: ...
    @property
    def variant(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def seeds(self) -> str: ...


def cell_folder(cell: CellKeys) -> str:
    """The folder of a cell, relative to that of its kind of artefact."""
    return f"{cell.dataset}/{cell.variant}/{cell.model}/{cell.seeds}"


def cell_paths(path: str, cells: Iterable[CellKeys]) -> list[str]:
    """The path of each cell, with its folder in place of {cell}."""
    return [path.replace("{cell}", cell_folder(cell)) for cell in cells]


class Paths:
    """Paths that the jobs of a study read; `folders` are searched for the study's own files."""

    def __init__(self, resolved: Resolved, runs: Runs, groups: MeasureGroups, folders: Sequence[Path]) -> None:
        self._resolved, self._runs, self._groups, self._folders = resolved, runs, groups, folders

    def reads(self, model: str) -> str:
        """What a model reads: words, subwords of its own tokenizer, or pixels."""
        return str(self._resolved.declarations["model", model].reads)

    def data_folder(self, cell: CellKeys) -> str:
        """The folder of the unmasked variant that a model reads."""
        variant = cell.variant if cell.variant in self._resolved.manipulated else PLAIN
        return f"results/data/{cell.dataset}/{variant}"

    def instances(self, cell: CellKeys) -> str:
        """The unmasked instances that a model reads."""
        subfolder = f"subwords/{cell.model}/" if self.reads(cell.model) == "subwords" else ""
        return f"{self.data_folder(cell)}/{subfolder}instances.parquet"

    def record(self, dataset: str, variant: str) -> str:
        """The record of a variant: its classes, and how it was manipulated."""
        folder = f"{dataset}/{variant}" if variant in self._resolved.manipulated else dataset
        return f"results/data/{folder}/dataset.json"

    def record_of(self, cell: CellKeys) -> str:
        """The record of the variant that a model reads."""
        return self.record(cell.dataset, cell.variant)

    def subwords(self, cell: CellKeys) -> str | list[str]:
        """The record of the subwords of a model with its own tokenizer."""
        path = f"{self.data_folder(cell)}/subwords/{cell.model}/subwords.json"
        return path if self.reads(cell.model) == "subwords" else []

    def vectors(self, cell: CellKeys) -> str | list[str]:
        """The initial word vectors of a model that reads words."""
        return f"results/data/{cell.dataset}/embedding.safetensors" if self.reads(cell.model) == "words" else []

    def model_options(self, cell: Any) -> dict[str, Any]:
        """A model's options; the checkpoint is a path if it is a folder next to the config or in the project."""
        options = self._resolved.model_options[cell.dataset, cell.model]
        checkpoint = options.get("checkpoint")
        if checkpoint and any((folder / checkpoint).is_dir() for folder in self._folders):
            return {**options, "checkpoint": locate(checkpoint, self._folders)}
        return options

    def checkpoint_files(self, cell: Any) -> list[str]:
        """The files of the checkpoint that a model starts from, if it is a folder."""
        folder = Path(self.model_options(cell).get("checkpoint") or os.devnull)
        return sorted(str(path) for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []

    def base(self, cell: CellKeys) -> Cell | None:
        """The cell of the base model of a derived model; None for other models."""
        derived = self._resolved.derived.get(cell.model)
        if derived is None:
            return None
        return Cell(cell.dataset, cell.variant, derived.base, self._resolved.base_block(cell.model, cell.dataset))

    def of_base(self, cell: CellKeys, table: str) -> str | list[str]:
        """A table of the base model of a derived model."""
        base = self.base(cell)
        return f"results/models/{cell_folder(base)}/{table}.parquet" if base else []

    def masking(self, cell: CellKeys) -> Masked | None:
        """How the words of a variant are masked; None if they are not."""
        return self._runs.masked.get(Cell(cell.dataset, cell.variant, cell.model, cell.seeds))

    def _of_variant(self, cell: CellKeys, variant: str, file: str) -> str:
        return f"results/models/{cell_folder(Cell(cell.dataset, variant, cell.model, cell.seeds))}/{file}"

    def masks(self, cell: CellKeys) -> str | list[str]:
        """The masks of the texts of a variant; none if nothing is masked."""
        masked = self.masking(cell)
        return [] if masked is None or masked.masks == PLAIN else self._of_variant(cell, masked.masks, "masks.parquet")

    def masks_below(self, cell: CellKeys) -> str | list[str]:
        """The masks of the previous level; none at the first."""
        masked = self.masking(cell)
        assert masked
        return [] if masked.below == PLAIN else self._of_variant(cell, masked.below, "masks.parquet")

    def importances_below(self, cell: CellKeys) -> str:
        """The importances that choose the masked words of a level."""
        return self.importances(*self.explained_below(cell))

    def explained_below(self, cell: CellKeys) -> tuple[Cell, str]:
        """The cell and the measure of these importances."""
        masked = self.masking(cell)
        assert masked
        below = UNMASKED if masked.below == PLAIN else masked.below
        return Cell(cell.dataset, below, cell.model, cell.seeds), masked.measure

    def explained_weights(self, cell: CellKeys) -> str:
        """The weights of the models that are explained."""
        return self._of_variant(cell, PLAIN if cell.variant == UNMASKED else cell.variant, "weights.safetensors")

    def importances(self, cell: CellKeys, measure: str) -> str:
        """The file with a measure's importances, which cheap measures share."""
        return f"results/attributions/{cell_folder(cell)}/{self._groups.of(measure, is_masked(cell.variant))}.parquet"

    def parts(self, cell: CellKeys, group: str) -> list[str]:
        """The files of the jobs over which the instances of a group of measures are split; none if it is one job."""
        number = self._resolved.study.compute.job(cell.dataset).attribution_parts
        if number == 1 or group not in self._groups.splittable:
            return []
        stem = f"results/attributions/{cell_folder(cell)}/{group}"
        return [f"{stem}.{part}-of-{number}.parquet" for part in range(1, number + 1)]

    def importance_manifests(self, cell: CellKeys, measure: str) -> list[str]:
        """The manifests of the jobs that compute a measure's importances."""
        parts = self.parts(cell, self._groups.of(measure, is_masked(cell.variant)))
        return [path.replace(".parquet", ".json") for path in parts or [self.importances(cell, measure)]]

    def all_importances(self, cell: CellKeys) -> dict[str, str]:
        """The file of each measure that explains a cell's model."""
        return {measure: self.importances(cell, measure) for measure in self._runs.measures[cell.model]}

    def imported(self, cell: CellKeys, group: str) -> list[str]:
        """The files of imported importances that a job reads."""
        measures = map(self._resolved.base_of, self._groups.measures(cell.variant, cell.model, group))
        return [
            str(self._resolved.options["measure", name]["path"])
            for name in dict.fromkeys(measures)
            if self._resolved.declarations["measure", name].name == IMPORTED
        ]
