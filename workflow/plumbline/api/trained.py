"""A model that a study has trained: its weights, classes and vocabulary in the folder of the study's results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os.path import abspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.api.places import place
from plumbline.config.runs import Cell
from plumbline.config.seeds import parse_seeds
from plumbline.dag.paths import cell_folder
from plumbline.dag.study import StudyDag
from plumbline.data.schemas import VOCABULARY
from plumbline.data.vocabulary import Vocabulary
from plumbline.errors import PlumblineError, nearest
from plumbline.registry import IMAGES
from plumbline.store import read_record, read_table

if TYPE_CHECKING:
    import torch

    from plumbline.models.budget import Budget
    from plumbline.models.evaluator import Evaluator

# The weights of a block of seeds, and the seeds of it.
Block = tuple[Path, list[int]]


@dataclass(frozen=True, repr=False)
class TrainedModel:
    """A model that a study has trained, for `plumbline.evaluate` and `plumbline.explain`.

    It has the weights of every seed of its study's blocks that are stored.
    """

    dataset: str
    variant: str
    model: str
    classes: list[str]
    task: str
    plugins: list[str]
    _blocks: list[Block]
    _entry: dict[str, Any]
    # The file of the words that it knows, unless it has its own tokenizer.
    _words: Path | None

    def __repr__(self) -> str:
        keys = f"dataset='{self.dataset}', model='{self.model}', variant='{self.variant}'"
        return f"{type(self).__name__}({keys}, seeds={self.seeds}, classes={self.classes})"

    @property
    def name(self) -> str:
        """The model and the dataset that it was trained on."""
        return f"{self.model} of {self.dataset}"

    @property
    def seeds(self) -> list[int]:
        """The seeds whose weights are stored."""
        return [seed for _, seeds in self._blocks for seed in seeds]

    def seeds_of(self, wanted: Sequence[int] | None) -> list[int]:
        """The seeds that are evaluated: those that are wanted, or all."""
        for seed in wanted or ():
            if seed not in self.seeds:
                raise PlumblineError(
                    f"`seeds` contains {seed}, but model '{self.model}' was trained on '{self.dataset}' with the seeds "
                    f"{', '.join(map(str, self.seeds))}."
                )
        return self.seeds if wanted is None else [*wanted]

    @cached_property
    def vocabulary(self) -> Vocabulary | None:
        """The words of the study's training texts; None if it has its own tokenizer."""
        if self._words is None:
            return None
        table = read_table(self._words, VOCABULARY)
        return Vocabulary(table["word"].to_pylist(), table["document_frequency"].to_pylist())

    def entry(self) -> dict[str, Any]:
        """Its entry in `models` of a config: its options and training in the study."""
        return self._entry

    def evaluators(
        self, pointer: str, options: Mapping[str, Any], seeds: list[int], budget: "Budget", device: "torch.device"
    ) -> "StoredModels":
        """The models of these seeds, loaded one at a time whenever they are iterated over."""
        paths = [next(path for path, block in self._blocks if seed in block) for seed in seeds]
        return StoredModels(pointer, options, len(self.classes), [*zip(paths, seeds, strict=True)], budget, device)


@dataclass(frozen=True)
class StoredModels:
    """The models of some seeds, loaded one at a time whenever they are iterated over."""

    pointer: str
    options: Mapping[str, Any]
    classes: int
    stored: list[tuple[Path, int]]
    budget: "Budget"
    device: "torch.device"

    def __iter__(self) -> "Iterator[Evaluator]":
        from plumbline.models.block import trained_models

        for path, seed in self.stored:
            yield from trained_models(path, self.pointer, self.options, self.classes, [seed], self.budget, self.device)


def find_trained(folder: Path, dag: StudyDag, dataset: str | None, model: str | None, variant: str) -> TrainedModel:
    """The model of a study with its results in `folder`; by default that of the first dataset and model by name."""
    cells = _cells_of(dag, dataset, model, variant)
    cell, paths = cells[0], dag.paths
    task = dag.params.declaration("dataset", cell.dataset).task
    if task == IMAGES:
        raise PlumblineError(
            f"Dataset '{cell.dataset}' consists of images, so its models cannot explain texts; choose another dataset."
        )
    derived = dag.resolved.derived.get(cell.model)
    if derived and not derived.adversary:
        raise PlumblineError(
            f"Model '{cell.model}' reads the attention of '{derived.base}', which is stored only for the texts of the "
            "study; choose another model."
        )
    blocks = _stored(folder, cells)
    kind, words = dag.params.declaration("model", cell.model).name, f"results/data/{cell.dataset}/vocabulary.parquet"
    return TrainedModel(
        cell.dataset,
        cell.variant,
        cell.model,
        list(read_record(place(folder, paths.record_of(cell)))["classes"]),
        task,
        [abspath(path) for path in dag.study.plugins],
        blocks,
        {"kind": kind, **paths.model_options(cell), "training": dag.params.training(cell)},
        place(folder, words) if paths.reads(cell.model) == "words" else None,
    )


def _cells_of(dag: StudyDag, dataset: str | None, model: str | None, variant: str) -> list[Cell]:
    """The cells of a dataset, model and variant, which differ in their blocks of seeds; by default of the first dataset
    of texts and its first model, by name."""
    cells = sorted(
        [*dag.runs.cells, *dag.runs.adversaries, *dag.runs.masked],
        key=lambda cell: (dag.params.declaration("dataset", cell.dataset).task == IMAGES, cell),
    )
    given = {"dataset": dataset, "model": model, "variant": variant}
    for key, value in given.items():
        if value is None:
            continue
        known = [*dict.fromkeys(getattr(cell, key) for cell in cells)]
        if value not in known:
            of = f" of '{dataset}'" if dataset and key != "dataset" else ""
            raise PlumblineError(f"There is no {key} '{value}'{of}; {nearest(value, known)}")
        cells = [cell for cell in cells if getattr(cell, key) == value]
    return [cell for cell in cells if (cell.dataset, cell.model) == (cells[0].dataset, cells[0].model)]


def _stored(folder: Path, cells: list[Cell]) -> list[Block]:
    """The blocks of these cells whose weights are stored."""
    paths = [place(folder, f"results/models/{cell_folder(cell)}/weights.safetensors") for cell in cells]
    blocks = [(path, parse_seeds(cell.seeds)) for path, cell in zip(paths, cells, strict=True) if path.is_file()]
    if not blocks:
        raise PlumblineError(
            f"There are no weights of model '{cells[0].model}' on '{cells[0].dataset}' ('{paths[0]}'): the study has "
            "not finished, they were deleted (as `compute.keep_retrained: false` does), or only its tables were kept; "
            "run the study again."
        )
    return blocks
