"""The inputs and params of the explorer: instances, predictions, importances, adversaries and masks."""

from functools import cached_property
from typing import Any

from plumbline.config.resolved import Resolved
from plumbline.config.runs import Cell, Runs
from plumbline.config.seeds import parse_seeds
from plumbline.config.variants import PLAIN
from plumbline.dag.paths import Paths, cell_paths
from plumbline.dag.sources import SourceFiles


class ExplorerInputs:
    """The inputs and params of the explorer of a study."""

    def __init__(self, resolved: Resolved, runs: Runs, paths: Paths, sources: SourceFiles) -> None:
        self._resolved, self._runs, self._paths, self._sources = resolved, runs, paths, sources

    @cached_property
    def cells(self) -> list[Cell]:
        """The cells whose instances are shown; of variants that are not kept, only those that figures show too. Without
        examples there are none, so that the explorer reads no file."""
        if self._resolved.study.report.examples == 0:
            return []
        drawn = {(cell.dataset, cell.variant) for cell in self._sources.shown_cells}
        temporary = [] if self._resolved.study.compute.keep_variants else self._resolved.manipulated
        return [
            cell for cell in self._runs.cells if cell.variant not in temporary or (cell.dataset, cell.variant) in drawn
        ]

    @cached_property
    def variants(self) -> list[tuple[str, str]]:
        """The datasets and variants whose instances are shown, in the order of the study."""
        order = list(self._resolved.study.datasets)
        pairs = {(cell.dataset, cell.variant) for cell in self.cells}
        return sorted(pairs, key=lambda pair: (order.index(pair[0]), pair[1] != PLAIN, pair[1]))

    @cached_property
    def subword_variants(self) -> list[tuple[str, str, str]]:
        """The same, each with a model that has its own tokenizer."""
        return [triple for triple in self._sources.subword_variants if triple[:2] in self.variants]

    @cached_property
    def attacked(self) -> set[Cell]:
        """The cells with scores of adversarial attention."""
        return set(self._sources.scored("adversarial_attention"))

    @cached_property
    def masked(self) -> list[dict[str, Any]]:
        """The curve points whose masks are shown: those of the first seed block of each dataset and model."""
        study = self._resolved.study
        return [
            {**vars(point), "dataset": cell.dataset, "model": cell.model, "seeds": cell.seeds}
            for cell, points in self._runs.curves.items()
            for point in points
            if cell in self.cells
            and cell.seeds == study.cut(cell.dataset, study.blocks(cell.model))[0]
            and not point.positions
            and point.variant != PLAIN
        ]

    def inputs(self) -> dict[str, list[str]]:
        """The files that the explorer reads."""
        masked = [
            Cell(**{key: point[key] for key in ("dataset", "variant", "model", "seeds")}) for point in self.masked
        ]
        adversaries = {cell: self._sources.shown_adversaries(cell) for cell in self.cells}
        attacks, retests = map(self._sources.protocols.get, ("adversarial_attention", "reliability"))
        return {
            "instances": [f"results/data/{dataset}/{variant}/instances.parquet" for dataset, variant in self.variants],
            "summaries": [self._paths.record(*pair) for pair in self.variants],
            "subwords": [
                f"results/data/{dataset}/{variant}/subwords/{model}/instances.parquet"
                for dataset, variant, model in self.subword_variants
            ],
            "masks": cell_paths("results/models/{cell}/masks.parquet", masked),
            "predictions": cell_paths("results/models/{cell}/predictions.parquet", self.cells),
            "importances": [path for cell in self.cells for path in self._paths.all_importances(cell).values()],
            "adversaries": cell_paths(
                f"results/scores/{attacks}/{{cell}}.parquet", [cell for cell in self.cells if cell in self.attacked]
            ),
            "attention": [
                path
                for cell, shown in adversaries.items()
                if shown
                for path in cell_paths("results/models/{cell}/attention.parquet", [cell, *shown])
            ],
            "adversary_predictions": [
                path
                for shown in adversaries.values()
                for path in cell_paths("results/models/{cell}/predictions.parquet", shown)
            ],
            "reliability": [f"results/tables/{retests}.parquet"] if retests and self.cells else [],
        }

    def params(self) -> dict[str, Any]:
        """The params of the explorer's job."""
        agreement = self._sources.protocols.get("agreement")
        ranked = self._resolved.options["protocol", agreement]["tokens"] if agreement else []
        tasks = {name: self._resolved.declarations["dataset", name].task for name in self._resolved.study.datasets}
        return {
            "specials": "all" in ranked,
            "sets": [(*pair, tasks[pair[0]]) for pair in self.variants],
            "cells": [
                {
                    **vars(cell),
                    "measures": self._runs.measures[cell.model],
                    "attacked": cell in self.attacked,
                    "shown_adversaries": [
                        self._adversary(adversary) for adversary in self._sources.shown_adversaries(cell)
                    ],
                }
                for cell in self.cells
            ],
            "subwords": self.subword_variants,
            "masked": self.masked,
        }

    def _adversary(self, cell: Cell) -> dict[str, Any]:
        derived = self._resolved.derived[cell.model]
        return {
            "adversary": derived.adversary,
            "objective": derived.objective,
            "strength": derived.strength,
            "base_seed": derived.base_seed,
            "seed": parse_seeds(cell.seeds)[0],
        }
