"""Where the artefacts of a study lie, and which of them a job reads."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from plumbline.config.external import IMPORTED, located
from plumbline.config.masking import Masked
from plumbline.config.resolved import Resolved
from plumbline.config.runs import Cell, Runs
from plumbline.config.variants import PLAIN, UNMASKED
from plumbline.dag.groups import MeasureGroups, is_masked


class CellKeys(Protocol):
    """A cell, or the wildcards of a job about one."""

    @property
    def dataset(self) -> str: ...
    @property
    def variant(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def seeds(self) -> str: ...


def folder(cell: CellKeys) -> str:
    """The folder of a cell below that of its kind of artefact."""
    return f"{cell.dataset}/{cell.variant}/{cell.model}/{cell.seeds}"


def each(path: str, cells: Iterable[CellKeys]) -> list[str]:
    """A path for each cell, whose folder stands for {cell} in it."""
    return [path.replace("{cell}", folder(cell)) for cell in cells]


class Paths:
    """Paths of what the jobs of a study read. `places` are the folders in which a study's own files may lie."""

    def __init__(self, resolved: Resolved, runs: Runs, groups: MeasureGroups, places: Sequence[Path]) -> None:
        self._resolved, self._runs, self._groups, self._places = resolved, runs, groups, places

    def reads(self, model: str) -> str:
        """What a model reads: words, subwords of its own tokenizer, or pixels."""
        return str(self._resolved.declarations["model", model].reads)

    def data_folder(self, cell: CellKeys) -> str:
        """The folder of the variant that a model reads, before anything is masked."""
        variant = cell.variant if cell.variant in self._resolved.manipulated else PLAIN
        return f"results/data/{cell.dataset}/{variant}"

    def texts(self, cell: CellKeys) -> str:
        """The instances that a model reads, without anything masked."""
        own = f"subwords/{cell.model}/" if self.reads(cell.model) == "subwords" else ""
        return f"{self.data_folder(cell)}/{own}instances.parquet"

    def record(self, dataset: str, variant: str) -> str:
        """The record of a variant: its classes, and how it was manipulated."""
        own = f"{dataset}/{variant}" if variant in self._resolved.manipulated else dataset
        return f"results/data/{own}/dataset.json"

    def record_of(self, cell: CellKeys) -> str:
        """The record of the variant that a model reads."""
        return self.record(cell.dataset, cell.variant)

    def subwords(self, cell: CellKeys) -> str | list[str]:
        """The record of a model's own subwords, if it has a tokenizer of its own."""
        own = f"{self.data_folder(cell)}/subwords/{cell.model}/subwords.json"
        return own if self.reads(cell.model) == "subwords" else []

    def vectors(self, cell: CellKeys) -> str | list[str]:
        """The word vectors that a model begins with, if it has none of its own."""
        return f"results/data/{cell.dataset}/embedding.safetensors" if self.reads(cell.model) == "words" else []

    def model_options(self, cell: Any) -> dict[str, Any]:
        """A model's options; a checkpoint that lies beside the study or in the project is named by its place."""
        found = self._resolved.model_options[cell.dataset, cell.model]
        checkpoint = found.get("checkpoint")
        if checkpoint and any((place / checkpoint).is_dir() for place in self._places):
            return {**found, "checkpoint": located(checkpoint, self._places)}
        return found

    def checkpoint_files(self, cell: Any) -> list[str]:
        """The files of the checkpoint that a model starts from, where it is a folder."""
        place = Path(self.model_options(cell).get("checkpoint") or os.devnull)
        return sorted(str(path) for path in place.iterdir() if path.is_file()) if place.is_dir() else []

    def of_base(self, cell: CellKeys, table: str) -> str | list[str]:
        """A table of the model that a model's training reads, if it reads one."""
        derived = self._resolved.derived.get(cell.model)
        if derived is None:
            return []
        base = Cell(cell.dataset, cell.variant, derived.base, derived.base_block)
        return f"results/models/{folder(base)}/{table}.parquet"

    def masking(self, cell: CellKeys) -> Masked | None:
        """How the words of a variant are masked; None if they are not."""
        return self._runs.masked.get(Cell(cell.dataset, cell.variant, cell.model, cell.seeds))

    def _of_variant(self, cell: CellKeys, variant: str, file: str) -> str:
        return f"results/models/{folder(Cell(cell.dataset, variant, cell.model, cell.seeds))}/{file}"

    def masks(self, cell: CellKeys) -> str | list[str]:
        """The masks of the texts that a model is trained on or explained by; none if nothing is masked."""
        found = self.masking(cell)
        return [] if found is None or found.masks == PLAIN else self._of_variant(cell, found.masks, "masks.parquet")

    def masks_below(self, cell: CellKeys) -> str | list[str]:
        """The masks to which a level adds; none at the first."""
        found = self.masking(cell)
        assert found
        return [] if found.below == PLAIN else self._of_variant(cell, found.below, "masks.parquet")

    def importances_below(self, cell: CellKeys) -> str:
        """The importances by which a level masks."""
        found = self.masking(cell)
        assert found
        below = UNMASKED if found.below == PLAIN else found.below
        return self.importances(Cell(cell.dataset, below, cell.model, cell.seeds), found.measure)

    def explained_weights(self, cell: CellKeys) -> str:
        """The weights of the models that are explained."""
        return self._of_variant(cell, PLAIN if cell.variant == UNMASKED else cell.variant, "weights.safetensors")

    def importances(self, cell: CellKeys, measure: str) -> str:
        """The file with a measure's importances, which may hold those of others."""
        return f"results/attributions/{folder(cell)}/{self._groups.of(measure, is_masked(cell.variant))}.parquet"

    def all_importances(self, cell: CellKeys) -> dict[str, str]:
        """The file of each measure that explains a cell's model."""
        return {measure: self.importances(cell, measure) for measure in self._runs.measures[cell.model]}

    def imported(self, cell: CellKeys, group: str) -> list[str]:
        """The files of importances, computed elsewhere, that a job reads."""
        measures = self._groups.measures(cell.variant, cell.model, group)
        own = [name for name in measures if self._resolved.declarations["measure", name].name == IMPORTED]
        return [str(self._resolved.options["measure", name]["path"]) for name in own]
