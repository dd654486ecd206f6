"""The files that tables and figures read, by source, each with its keys such as dataset and model.

A source is a table, or `KIND` or `KIND:OF`: the files of a kind for a set of cells. `scores:agreement` are the scores
of the protocol agreement; `datasets:agreement` and `instances:agreement` are those of the datasets that it scores.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from plumbline.config.resolved import Resolved
from plumbline.config.runs import Cell, Runs
from plumbline.config.variants import PLAIN, UNMASKED
from plumbline.dag.paths import Paths, cell_folder, cell_paths
from plumbline.registry import IMAGES


class SourceFile(NamedTuple):
    """A file of a source and its keys."""

    keys: dict[str, Any]
    path: str


class SourceFiles:
    """The files of each source that is not a table."""

    def __init__(self, resolved: Resolved, runs: Runs, paths: Paths) -> None:
        self._resolved, self._runs, self._paths = resolved, runs, paths
        self._files: dict[str, list[SourceFile] | None] = {}

    @cached_property
    def protocols(self) -> dict[str, str]:
        """The study's name of each registered protocol; of several, the first."""
        named = [(self._resolved.declarations["protocol", name].name, name) for name in self._resolved.study.protocols]
        return dict(reversed(named))

    def scored(self, protocol: str) -> list[Cell]:
        """The cells that a registered protocol scores."""
        return self._runs.scored[self.protocols[protocol]] if protocol in self.protocols else []

    def files(self, source: str) -> list[SourceFile] | None:
        """The files of a source; None if there is no such source."""
        if source not in self._files:
            kind, _, of = source.partition(":")
            list_files = self._kinds.get(kind)
            self._files[source] = list_files(of) if list_files else None
        return self._files[source]

    @cached_property
    def _kinds(self) -> dict[str, Callable[[str], list[SourceFile]]]:
        return {
            "predictions": self._predictions,
            "histories": lambda of: self._histories(),
            "manifests": self._manifests,
            "datasets": self._datasets,
            "instances": self._instances,
            "importances": self._importances,
            "scores": lambda of: self.of_cells(
                f"results/scores/{self.protocols.get(of, of)}/{{cell}}.parquet", self.scored(of)
            ),
            "traces": lambda of: self.of_cells("results/scores/trace/{cell}.parquet", self.traced),
        }

    def of_cells(self, path: str, cells: Iterable[Cell]) -> list[SourceFile]:
        """The file of each cell, with its folder in place of {cell}."""
        return [SourceFile(vars(cell).copy(), path.replace("{cell}", cell_folder(cell))) for cell in cells]

    def _cells(self, of: str) -> list[Cell]:
        return {"": self._runs.cells, "curves": self.curve_cells, "shown": self.shown_cells}[of]

    def _predictions(self, of: str) -> list[SourceFile]:
        """The predictions of models; of those that adversaries attack with the seed that each of them attacks."""
        path = "results/models/{cell}/predictions.parquet"
        if of != "attacked":
            return self.of_cells(path, self._cells(of))
        files = {}
        for cell in self._runs.adversaries:
            derived, base = self._resolved.derived[cell.model], self._paths.base(cell)
            assert base
            keys = {"dataset": base.dataset, "variant": base.variant, "model": base.model}
            (file,) = self.of_cells(path, [base])
            files[base, derived.base_seed] = SourceFile(keys | {"base_seed": derived.base_seed}, file.path)
        return list(files.values())

    def _histories(self) -> list[SourceFile]:
        """The training histories of adversaries."""
        files = []
        for cell in self._runs.adversaries:
            derived = self._resolved.derived[cell.model]
            training = self._resolved.trainings[cell.dataset, cell.model]
            keys = {
                "dataset": cell.dataset,
                "variant": cell.variant,
                "model": derived.base,
                "adversary": derived.adversary,
                "objective": derived.objective,
                "strength": derived.strength,
                "base_seed": derived.base_seed,
                "selected_on": [training.select_on, *training.also_select_on],
                "first": training.first_eligible_epoch,
                "patience": training.patience,
            }
            files.append(SourceFile(keys, f"results/models/{cell_folder(cell)}/history.parquet"))
        return files

    def _manifests(self, of: str) -> list[SourceFile]:
        """The manifests of models, or of all heavy jobs of the study."""
        if of == "models":
            return self.of_cells("results/models/{cell}/manifest.json", self._runs.cells)
        runs, study = self._runs, self._resolved.study
        explained = [(cell, measure) for cell in runs.cells for measure in runs.measures[cell.model]]
        masking = {self._paths.explained_below(cell) for cell, masked in runs.masked.items() if not masked.positions}
        paths = [
            *(f"results/data/{dataset}/manifest.json" for dataset in study.datasets),
            *cell_paths("results/models/{cell}/manifest.json", [*runs.cells, *runs.adversaries, *runs.masked]),
            *cell_paths("results/models/{cell}/attention.json", self.attention_cells),
            *dict.fromkeys(
                path
                for cell, measure in [*explained, *sorted(masking)]
                for path in self._paths.importance_manifests(cell, measure)
            ),
            *(
                f"results/data/{dataset}/{variant}/subwords/{model}/manifest.json"
                for dataset, variant, model in self.subword_variants
            ),
            *(f"results/data/{dataset}/{variant}/manifest.json" for dataset, variant in self.manipulated_variants),
            *cell_paths("results/scores/trace/{cell}.json", self.traced),
            *(
                path
                for name in study.protocols
                for path in cell_paths(f"results/scores/{name}/{{cell}}.json", runs.scored[name])
            ),
        ]
        return [SourceFile({}, path) for path in paths]

    def _datasets(self, of: str) -> list[SourceFile]:
        """Records of all datasets, of those that a protocol scores, or of the variants whose instances are shown."""
        if of == "shown":
            return [SourceFile(vars(cell).copy(), self._paths.record_of(cell)) for cell in self.shown_cells]
        names = self._resolved.study.datasets if not of else sorted({cell.dataset for cell in self.scored(of)})
        return [SourceFile({"dataset": name}, self._paths.record(name, PLAIN)) for name in names]

    def _instances(self, of: str) -> list[SourceFile]:
        """Instances of the datasets that a protocol scores, or those of shown cells as models read them."""
        if of == "shown":
            return [SourceFile(vars(cell).copy(), self._paths.instances(cell)) for cell in self.shown_cells]
        names = sorted({cell.dataset for cell in self.scored(of)})
        return [SourceFile({"dataset": name}, f"results/data/{name}/{PLAIN}/instances.parquet") for name in names]

    def _importances(self, of: str) -> list[SourceFile]:
        """Importances of all cells, of shown cells, or of the unmasked models with which masking begins."""
        unmasked = of == "unmasked"
        if unmasked:
            pairs = sorted({(cell, point.measure) for cell, points in self._runs.curves.items() for point in points})
        else:
            pairs = [(cell, measure) for cell in self._cells(of) for measure in self._runs.measures[cell.model]]
        return [
            SourceFile(
                vars(cell) | {"measure": measure},
                self._paths.importances(replace(cell, variant=UNMASKED) if unmasked else cell, measure),
            )
            for cell, measure in pairs
        ]

    # Sets of cells.

    @cached_property
    def curve_cells(self) -> list[Cell]:
        """The distinct cells of all curve points."""
        return sorted(
            {replace(cell, variant=point.variant) for cell, points in self._runs.curves.items() for point in points}
        )

    @cached_property
    def traced(self) -> list[Cell]:
        """The cells with known ground truth whose models are explained during training: those that keep checkpoints."""
        trainings = self._resolved.trainings
        return [
            cell
            for cell in self.scored("ground_truth")
            if trainings[cell.dataset, cell.model].checkpoint_gain is not None
        ]

    @cached_property
    def subword_variants(self) -> list[tuple[str, str, str]]:
        """The datasets and variants, each with a model that has its own tokenizer."""
        cells = [cell for cell in self._runs.cells if self._paths.reads(cell.model) == "subwords"]
        return sorted({(cell.dataset, cell.variant, cell.model) for cell in cells})

    @cached_property
    def manipulated_variants(self) -> list[tuple[str, str]]:
        """The datasets and manipulated variants that models are trained on."""
        cells = [cell for cell in self._runs.cells if cell.variant in self._resolved.manipulated]
        return sorted({(cell.dataset, cell.variant) for cell in cells})

    @cached_property
    def attention_cells(self) -> list[Cell]:
        """The cells with stored attention: those that a derived model reads, and those that the report shows."""
        read = filter(None, map(self._paths.base, [*self._runs.cells, *self._runs.adversaries]))
        shown = (adversary for cell in self._runs.cells for adversary in self.shown_adversaries(cell))
        return sorted({*read, *shown})

    def shown_adversaries(self, cell: Cell) -> list[Cell]:
        """The adversaries that the report shows with a model: the strongest of each name, with its first seeds."""
        strongest: dict[str, Any] = {}
        for derived in self._resolved.derived.values():
            if derived.adversary and self._paths.base(replace(cell, model=derived.name)) == cell:
                previous = strongest.setdefault(derived.adversary, derived)
                strongest[derived.adversary] = max(previous, derived, key=lambda adversary: adversary.strength or 0)
        blocks = {derived.name: self._resolved.study.cut(cell.dataset, derived.seeds) for derived in strongest.values()}
        cells = [replace(cell, model=name, seeds=seeds[0]) for name, seeds in blocks.items()]
        return [adversary for adversary in cells if adversary in set(self._runs.adversaries)]

    @cached_property
    def shown_cells(self) -> list[Cell]:
        """The cells with known ground truth whose texts or images are drawn: of each dataset, model and manipulation
        the first block of the most visible variant."""
        shown: dict[tuple[str, str, str], Cell] = {}
        manipulated = self._resolved.manipulated
        for cell in self.scored("ground_truth"):
            if self._runs.measures[cell.model] != ["selection"]:
                key = cell.dataset, cell.model, manipulated[cell.variant].name
                best = shown.setdefault(key, cell)
                if (manipulated[cell.variant].visibility or 0) > (manipulated[best.variant].visibility or 0):
                    shown[key] = cell
        return sorted(shown.values(), key=lambda cell: (cell.dataset, cell.model))

    def has_images(self, dataset: str) -> bool:
        """Whether a dataset's instances are images."""
        return bool(self._resolved.declarations["dataset", dataset].task == IMAGES)
