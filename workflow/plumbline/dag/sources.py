"""The files that tables and figures read, by the name of their source, each with the keys of what it is about.

A name is that of a table, or `KIND` or `KIND:OF`: the files of a kind about some cells. `scores:agreement` are the
scores of the protocol agreement; `datasets:agreement` and `instances:agreement` are about the datasets that it scores.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple

from plumbline.config.resolved import Resolved
from plumbline.config.runs import Cell, Runs
from plumbline.config.variants import PLAIN, UNMASKED
from plumbline.dag.paths import Paths, each, folder
from plumbline.registry import IMAGES


class SourceFile(NamedTuple):
    """A file of a source and the keys of what it is about."""

    keys: dict[str, Any]
    path: str


class SourceFiles:
    """The files of each source that is no table."""

    def __init__(self, resolved: Resolved, runs: Runs, paths: Paths) -> None:
        self._resolved, self._runs, self._paths = resolved, runs, paths

    @cached_property
    def protocols(self) -> dict[str, str]:
        """The study's name for each registered protocol that it has; if it has one twice, for the first."""
        named = [(self._resolved.declarations["protocol", name].name, name) for name in self._resolved.study.protocols]
        return dict(reversed(named))

    def scored(self, protocol: str) -> list[Cell]:
        """The cells that a registered protocol scores."""
        return self._runs.scored[self.protocols[protocol]] if protocol in self.protocols else []

    def files(self, source: str) -> list[SourceFile] | None:
        """The files of a source; None if there is no such source."""
        if source not in self._found:
            kind, _, of = source.partition(":")
            make = self._kinds.get(kind)
            self._found[source] = make(of) if make else None
        return self._found[source]

    @cached_property
    def _found(self) -> dict[str, list[SourceFile] | None]:
        return {}

    @cached_property
    def _kinds(self) -> dict[str, Callable[[str], list[SourceFile]]]:
        return {
            "predictions": lambda of: self.of_cells("results/models/{cell}/predictions.parquet", self._cells(of)),
            "histories": lambda of: self._histories(),
            "manifests": lambda of: self._model_manifests() if of == "models" else self._manifests(),
            "datasets": self._datasets,
            "instances": self._instances,
            "importances": self._importances,
            "scores": lambda of: self.of_cells(
                f"results/scores/{self.protocols.get(of, of)}/{{cell}}.parquet", self.scored(of)
            ),
            "traces": lambda of: self.of_cells("results/scores/trace/{cell}.parquet", self.traced),
        }

    def of_cells(self, path: str, cells: Iterable[Cell]) -> list[SourceFile]:
        """A file for each cell, whose folder stands for {cell} in the path."""
        return [SourceFile(vars(cell).copy(), path.replace("{cell}", folder(cell))) for cell in cells]

    def _cells(self, of: str) -> list[Cell]:
        return {"": self._runs.cells, "curves": self.curve_cells, "shown": self.shown_cells}[of]

    def _histories(self) -> list[SourceFile]:
        """Those of adversaries: the base model, its seed and the objective are keys."""
        found = []
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
            found.append(SourceFile(keys, f"results/models/{folder(cell)}/history.parquet"))
        return found

    def _model_manifests(self) -> list[SourceFile]:
        return self.of_cells("results/models/{cell}/manifest.json", self._runs.cells)

    def _manifests(self) -> list[SourceFile]:
        """That of every heavy job of the study."""
        runs, study = self._runs, self._resolved.study
        groups = dict.fromkeys(path for cell in runs.cells for path in self._paths.all_importances(cell).values())
        masking = sorted(
            {self._paths.importances_below(cell) for cell, how in runs.masked.items() if not how.positions}
        )
        paths = [
            *(f"results/data/{dataset}/manifest.json" for dataset in study.datasets),
            *each("results/models/{cell}/manifest.json", [*runs.cells, *runs.adversaries, *runs.masked]),
            *each("results/models/{cell}/attention.json", self.attention_cells),
            *(path.replace(".parquet", ".json") for path in [*groups, *masking]),
            *(
                f"results/data/{dataset}/{variant}/subwords/{model}/manifest.json"
                for dataset, variant, model in self.subworded
            ),
            *(f"results/data/{dataset}/{variant}/manifest.json" for dataset, variant in self.manipulated),
            *each("results/scores/trace/{cell}.json", self.traced),
            *(
                path
                for name in study.protocols
                for path in each(f"results/scores/{name}/{{cell}}.json", runs.scored[name])
            ),
        ]
        return [SourceFile({}, path) for path in paths]

    def _datasets(self, of: str) -> list[SourceFile]:
        """Records of datasets: all, those that a protocol scores, or of the variants whose instances are shown."""
        if of == "shown":
            return [SourceFile(vars(cell).copy(), self._paths.record_of(cell)) for cell in self.shown_cells]
        names = self._resolved.study.datasets if not of else sorted({cell.dataset for cell in self.scored(of)})
        return [SourceFile({"dataset": name}, self._paths.record(name, PLAIN)) for name in names]

    def _instances(self, of: str) -> list[SourceFile]:
        """Instances of the datasets that a protocol scores, or those that are shown as models read them."""
        if of == "shown":
            return [SourceFile(vars(cell).copy(), self._paths.texts(cell)) for cell in self.shown_cells]
        names = sorted({cell.dataset for cell in self.scored(of)})
        return [SourceFile({"dataset": name}, f"results/data/{name}/{PLAIN}/instances.parquet") for name in names]

    def _importances(self, of: str) -> list[SourceFile]:
        """Importances of all cells, of those that are shown, or those with which masking begins."""
        if of == "unmasked":
            asked = sorted({(cell, point.measure) for cell, some in self._runs.curves.items() for point in some})
            begun = [(Cell(cell.dataset, UNMASKED, cell.model, cell.seeds), cell, measure) for cell, measure in asked]
        else:
            cells = self._cells(of)
            begun = [(cell, cell, measure) for cell in cells for measure in self._runs.measures[cell.model]]
        return [
            SourceFile(vars(cell) | {"measure": measure}, self._paths.importances(at, measure))
            for at, cell, measure in begun
        ]

    # Cells that some sources are about.

    @cached_property
    def curve_cells(self) -> list[Cell]:
        """The cells of all points of curves, each once."""
        return sorted(
            {
                Cell(cell.dataset, point.variant, cell.model, cell.seeds)
                for cell, some in self._runs.curves.items()
                for point in some
            }
        )

    @cached_property
    def traced(self) -> list[Cell]:
        """The cells of known truth whose models are explained while they learn: those that keep epochs on the way."""
        kept = self._resolved.trainings
        return [
            cell for cell in self.scored("ground_truth") if kept[cell.dataset, cell.model].checkpoint_gain is not None
        ]

    @cached_property
    def subworded(self) -> list[tuple[str, str, str]]:
        """The datasets and variants, each with a model that has its own tokenizer."""
        own = [cell for cell in self._runs.cells if self._paths.reads(cell.model) == "subwords"]
        return sorted({(cell.dataset, cell.variant, cell.model) for cell in own})

    @cached_property
    def manipulated(self) -> list[tuple[str, str]]:
        """The manipulated variants of datasets that models are trained on, each once."""
        own = [cell for cell in self._runs.cells if cell.variant in self._resolved.manipulated]
        return sorted({(cell.dataset, cell.variant) for cell in own})

    @cached_property
    def attention_cells(self) -> list[Cell]:
        """The cells with stored attention: those that a derived model reads, and those that the report shows."""
        derived = self._resolved.derived
        read = [
            Cell(cell.dataset, cell.variant, derived[cell.model].base, derived[cell.model].base_block)
            for cell in [*self._runs.cells, *self._runs.adversaries]
            if cell.model in derived
        ]
        shown = (adversary for cell in self._runs.cells for adversary in self.shown_adversaries(cell))
        return sorted({*read, *shown})

    def shown_adversaries(self, cell: Cell) -> list[Cell]:
        """The adversaries that the report sets beside a model: of each name the strongest, with its first seeds."""
        strongest: dict[str, Any] = {}
        for derived in self._resolved.derived.values():
            if derived.adversary and (derived.base, derived.base_block) == (cell.model, cell.seeds):
                before = strongest.setdefault(derived.adversary, derived)
                strongest[derived.adversary] = max(before, derived, key=lambda one: one.strength or 0)
        found = [Cell(cell.dataset, cell.variant, one.name, one.seeds[0]) for one in strongest.values()]
        return [adversary for adversary in found if adversary in set(self._runs.adversaries)]

    @cached_property
    def shown_cells(self) -> list[Cell]:
        """The cells of known truth whose texts or images are drawn: of each dataset, model and manipulation the first
        block of the most visible variant."""
        found: dict[tuple[str, str, str], Cell] = {}
        made = self._resolved.manipulated
        for cell in self.scored("ground_truth"):
            if self._runs.measures[cell.model] != ["selection"]:
                best = found.setdefault((cell.dataset, cell.model, made[cell.variant].name), cell)
                if (made[cell.variant].visibility or 0) > (made[best.variant].visibility or 0):
                    found[cell.dataset, cell.model, made[cell.variant].name] = cell
        order = sorted({(cell.dataset, cell.model) for cell in found.values()})
        return [cell for pair in order for cell in found.values() if (cell.dataset, cell.model) == pair]

    def has_images(self, dataset: str) -> bool:
        """Whether a dataset's instances are images."""
        return bool(self._resolved.declarations["dataset", dataset].task == IMAGES)
