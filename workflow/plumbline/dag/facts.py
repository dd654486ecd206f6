"""Facts of a study that tables and figures may request by name; they reach a job through its params."""

from typing import Any

from plumbline.config.masking import baseline
from plumbline.config.resolved import Resolved
from plumbline.config.runs import Runs
from plumbline.registry import PACKAGE, PAIRED, Declaration, Kind
from plumbline.runtime.provenance import text_hash


class Facts:
    """The facts of a study, one method for each."""

    def __init__(self, resolved: Resolved, runs: Runs, criteria: list[Declaration]) -> None:
        self._resolved, self._runs, self._criteria = resolved, runs, criteria

    def requested_by(self, declarations: list[Declaration]) -> dict[str, Any]:
        """The facts that declarations name in `params`."""
        names = {name for declaration in declarations for name in declaration.facts.get("params", [])}
        return {name: getattr(self, name)() for name in sorted(names)}

    def _kinds_of(self, kind: Kind) -> dict[str, str]:
        declared = self._resolved.declarations.items()
        return {name: declaration.name for (k, name), declaration in declared if k == kind}

    def random(self) -> str:
        """The study's name of the random measure."""
        return baseline(self._resolved)

    def study(self) -> str:
        """The study's name."""
        return self._resolved.study.name

    def least_above_chance(self) -> float | None:
        """How far above chance a model must be to count."""
        return self._resolved.study.least_above_chance

    def measure_kinds(self) -> dict[str, str]:
        """The registered measure of each name."""
        return self._kinds_of("measure")

    def degraded(self) -> dict[str, dict[str, Any]]:
        """The base measure, `of`, and the `share` of each degraded measure."""
        return {name: self._resolved.options["measure", name] for name in self._resolved.study.degraded}

    def model_kinds(self) -> dict[str, str]:
        """The registered model of each name."""
        return self._kinds_of("model")

    def manipulation_kinds(self) -> dict[str, str]:
        """The registered manipulation of each manipulated variant."""
        return {name: variant.kind for name, variant in self._resolved.manipulated.items()}

    def kinds(self) -> dict[str, str]:
        """The registered measure or model of each name."""
        return {**self._kinds_of("measure"), **self._kinds_of("model")}

    def datasets(self) -> list[str]:
        """The names of the datasets in order."""
        return list(self._resolved.study.datasets)

    def order(self) -> list[str]:
        """The names of the datasets and models in order."""
        return [*self._resolved.study.datasets, *self._resolved.study.models]

    def splits(self) -> list[str]:
        """The splits whose instances are explained."""
        return list(self._resolved.study.explain)

    def tasks(self) -> dict[str, str]:
        """The task of each dataset."""
        return {name: self._resolved.declarations["dataset", name].task for name in self._resolved.study.datasets}

    def headlines(self) -> dict[str, str]:
        """The metric of ROAR on each dataset."""
        return {name: "accuracy" if task in PAIRED else "macro_f1" for name, task in self.tasks().items()}

    def criteria(self) -> list[dict[str, Any]]:
        """The declared columns of the scorecard."""
        return [
            {
                "name": criterion.name,
                "object": criterion.pointer,
                "facts": {
                    fact: criterion.facts[fact]
                    for fact in (
                        "table",
                        "direction",
                        "range",
                        "variants",
                        "measure",
                        "least_measures",
                        "faithfulness",
                    )
                },
                "options": {name: option.default for name, option in criterion.options.items()},
            }
            for criterion in self._criteria
        ]

    def curve_points(self) -> list[dict[str, Any]]:
        """Each point of the masking curves with its cell."""
        return [
            {
                "dataset": cell.dataset,
                "model": cell.model,
                "strategy": point.strategy,
                "unit": point.unit,
                "measure": point.measure,
                "level": point.level,
                "trained_on": "positions" if point.positions else "words",
                "variant": point.variant,
                "seeds": cell.seeds,
            }
            for cell, points in self._runs.curves.items()
            for point in points
        ]

    def select_on(self) -> dict[str, dict[str, str]]:
        """The split on which each model's epoch is selected, by dataset and model."""
        study, trainings = self._resolved.study, self._resolved.trainings
        return {
            dataset: {model: trainings[dataset, model].select_on for model in study.models}
            for dataset in study.datasets
        }

    def vectors(self) -> dict[str, dict[str, Any]]:
        """The registered dataset, the kind of word vectors and their scale for each dataset."""
        kinds = self._kinds_of("dataset")
        return {
            name: {"kind": kinds[name], "vectors": prepared.embedding.kind, "scale": prepared.embedding.scale}
            for name, prepared in self._resolved.preparations.items()
        }

    def names(self) -> dict[str, Any]:
        """Registered names and non-default options, which match the study's objects with published numbers."""
        study = self._resolved.study
        return {
            "datasets": self._kinds_of("dataset"),
            # Published numbers do not cover derived models.
            "models": {
                model: kind for model, kind in self._kinds_of("model").items() if model not in self._resolved.derived
            },
            "measures": self._kinds_of("measure"),
            "dataset_options": {name: self._resolved.options["dataset", name] for name in study.datasets},
            "model_options": {name: self._changed("model", name) for name in study.models},
            "measure_options": {name: self._changed("measure", name) for name in study.measures},
            "masking_target": next((entry.target for entry in study.roar.values()), "gold"),
        }

    def published(self) -> str:
        """The hash of the published numbers; their files are no inputs, so that paths and dates do not matter."""
        return text_hash(PACKAGE, "papers/published/*.csv")

    def _changed(self, kind: Kind, name: str) -> dict[str, Any]:
        """The options of an object that differ from their defaults."""
        declared = self._resolved.declarations[kind, name].options
        options = self._resolved.options[kind, name]
        return {option: value for option, value in options.items() if value != declared[option].default}
