"""Everything that the rules need to know about a study."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from plumbline.config.resolved import Resolved
from plumbline.config.runs import list_runs
from plumbline.config.variants import PLAIN, UNMASKED
from plumbline.dag.checks import check_declarations
from plumbline.dag.explorer import ExplorerInputs
from plumbline.dag.facts import Facts
from plumbline.dag.groups import MeasureGroups
from plumbline.dag.params import Params
from plumbline.dag.parts import Parts
from plumbline.dag.paths import Paths
from plumbline.dag.sources import SourceFile, SourceFiles
from plumbline.runtime.provenance import DESCRIPTIVE


def one_of(names: Iterable[str]) -> str:
    """A wildcard pattern that matches only these names."""
    return "|".join(sorted(map(re.escape, names))) or "none"


class StudyDag:
    """Paths, params and targets of a study; `folders` are searched for its own files, `scripts` holds the scripts."""

    def __init__(self, resolved: Resolved, folders: Sequence[Path], scripts: Path) -> None:
        check_declarations(resolved.registry, resolved.study.protocols)
        self.resolved, self.study, self.runs = resolved, resolved.study, list_runs(resolved)
        self.groups = MeasureGroups(resolved, self.runs)
        self.paths = Paths(resolved, self.runs, self.groups, folders)
        self.params = Params(resolved, self.runs, self.groups, self.paths, scripts)
        self.sources = SourceFiles(resolved, self.runs, self.paths)
        self.parts = Parts(resolved, self.runs, self.sources)
        self.facts = Facts(resolved, self.runs, self.parts.criteria)
        self.explorer = ExplorerInputs(resolved, self.runs, self.paths, self.sources)

    @cached_property
    def wildcards(self) -> dict[str, str]:
        """The pattern of each wildcard."""
        cells = [*self.runs.cells, *self.runs.adversaries]
        return {
            "dataset": one_of(self.study.datasets),
            "variant": self.stored_pattern,
            "model": one_of([*self.study.models, *self.resolved.derived]),
            "seeds": one_of({cell.seeds for cell in cells}),
            "measures": one_of(self.groups.names),
            "part": r"\d+-of-\d+",
            "protocol": one_of(self.study.protocols),
            "table": one_of(self.parts.tables),
        }

    @cached_property
    def split_wildcards(self) -> dict[str, str]:
        """The patterns of the datasets and measures whose instances are split over jobs; empty if none are."""
        jobs = self.study.compute.jobs
        datasets = [dataset for dataset in jobs if jobs[dataset].attribution_parts > 1]
        split = datasets and self.groups.splittable
        return {"dataset": one_of(datasets), "measures": one_of(split)} if split else {}

    @cached_property
    def stored_pattern(self) -> str:
        """The variants stored under results/data: plain and manipulated ones."""
        return one_of([PLAIN, *self.resolved.manipulated])

    @cached_property
    def masked_pattern(self) -> str:
        """The variants with masked words."""
        return rf"(roar|recursive)/(relative|absolute)/({one_of(self.study.measures)})/\d+"

    @cached_property
    def positions_pattern(self) -> str:
        """The variants that hold nothing but the positions of masked words."""
        return rf"positions/({PLAIN}|{self.masked_pattern})"

    @cached_property
    def explained_pattern(self) -> str:
        """The variants whose models are explained."""
        return f"{self.stored_pattern}|{UNMASKED}|{self.masked_pattern}"

    @cached_property
    def scoring(self) -> dict[str, str]:
        """The pattern of each scoring rule's protocols: those without a GPU, and those that query the model."""
        gpu = {name: bool(self.resolved.declarations["protocol", name].gpu) for name in self.study.protocols}
        rules = {"score": False, "score_models": True}
        return {rule: one_of(name for name in gpu if gpu[name] == queries) for rule, queries in rules.items()}

    # Tables and figures.

    def table_params(self, table: str) -> dict[str, Any]:
        """The params of a table's job: the object that makes it, the keys of its files, and facts."""
        declaration = self.parts.tables[table]
        return {
            "object": declaration.pointer,
            "options": self.resolved.options["protocol", table] if declaration.kind == "protocol" else {},
            "latex": declaration.facts.get("latex", ""),
            "files": _keys(self.parts.table_reads(table)),
            "facts": self.facts.requested_by([declaration]),
        }

    def table_code(self, table: str) -> str:
        """The hash of the code that makes a table."""
        return self.params.code("table", files=self.parts.code_files([self.parts.tables[table]]))

    def figure_params(self, group: str) -> dict[str, Any]:
        """The params of the job that draws a group of figures."""
        figures = self.parts.figure_groups[group]
        return {
            "objects": {figure.name: figure.pointer for figure in figures},
            "plots": [plot._asdict() for plot in self.parts.plots(figures)],
            "files": _keys(self.parts.reads(figures)),
            "facts": self.facts.requested_by(figures),
        }

    def figure_code(self, group: str) -> str:
        """The hash of the code that draws a group of figures."""
        return self.params.code("figures", files=self.parts.code_files(self.parts.figure_groups[group]))

    # Targets.

    def table_files(self) -> list[str]:
        """All tables of the study."""
        return [f"results/tables/{name}.{suffix}" for name in self.parts.tables for suffix in ("parquet", "csv")]

    def figure_files(self) -> list[str]:
        """All figures of the study."""
        return [path for plot in self.parts.plots(self.parts.figures) for path in plot.files]

    def page_files(self) -> list[str]:
        """The pages of the report, the overview first."""
        return [f"results/report/{page.name}.html" for page in self.parts.pages]

    def report_params(self) -> dict[str, Any]:
        """The params of the report's job."""
        options = {model: self.resolved.options["model", model] for model in self.study.models}
        measures = [self.resolved.declarations["measure", name] for name in self.study.measures]
        return {
            "study": self.study.model_dump(),
            "cells": [
                {
                    **vars(cell),
                    "measures": self.runs.measures[cell.model],
                    "masked_by": list(dict.fromkeys(point.measure for point in self.runs.curves.get(cell, []))),
                }
                for cell in self.runs.cells
            ],
            # Encoder and attention of each model with these options.
            "parts": {
                model: {key: of[key] for key in ("encoder", "attention") if key in of} for model, of in options.items()
            },
            "excluded": [vars(excluded) for excluded in self.runs.excluded],
            # Texts about figures, pages, metrics and measures, which the code hash leaves out.
            "words": {
                f"{part.kind} {part.name}": {
                    key: getattr(part, key) for key in ["summary", *sorted(DESCRIPTIVE[part.kind])]
                }
                for part in [*self.parts.figures, *self.parts.pages]
            }
            | {
                f"{metric.kind} {metric.name}": [metric.facts.get("equation"), metric.facts.get("unit"), metric.summary]
                for metric in [*self.resolved.registry.all("metric"), *measures]
            },
        }

    def report_code(self) -> str:
        """The hash of the code of the report and its pages."""
        return self.params.code("report", files=[page.path for page in self.parts.pages])


def _keys(sources: dict[str, list[SourceFile]]) -> dict[str, list[dict[str, Any]]]:
    """The keys of each source's files, in order."""
    return {source: [file.keys for file in files] for source, files in sources.items()}
