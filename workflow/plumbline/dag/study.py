"""A resolved study as the rules see it."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from plumbline.config.resolved import Resolved
from plumbline.config.runs import list_runs
from plumbline.config.variants import PLAIN, UNMASKED
from plumbline.dag.checks import check_declarations
from plumbline.dag.explored import Explored
from plumbline.dag.facts import Facts
from plumbline.dag.groups import MeasureGroups
from plumbline.dag.params import Params
from plumbline.dag.parts import FORMATS, Parts, Plot
from plumbline.dag.paths import Paths
from plumbline.dag.sources import SourceFile, SourceFiles
from plumbline.registry import Declaration
from plumbline.runtime.provenance import DESCRIPTIVE


def one_of(names: Iterable[str]) -> str:
    """A pattern of a wildcard that takes these names alone."""
    return "|".join(sorted(map(re.escape, names))) or "none"


class StudyDag:
    """Paths, params and targets of a study. `places` are the folders in which its own files may lie, `scripts` is that
    of the rules' scripts."""

    def __init__(self, resolved: Resolved, places: Sequence[Path], scripts: Path) -> None:
        check_declarations(resolved.registry, resolved.study.protocols)
        self.resolved, self.study, self.runs = resolved, resolved.study, list_runs(resolved)
        self.groups = MeasureGroups(resolved, self.runs)
        self.paths = Paths(resolved, self.runs, self.groups, places)
        self.params = Params(resolved, self.runs, self.groups, self.paths, scripts)
        self.sources = SourceFiles(resolved, self.runs, self.paths)
        self.parts = Parts(resolved, self.runs, self.sources)
        self.facts = Facts(resolved, self.runs, self.parts.criteria)
        self.explored = Explored(resolved, self.runs, self.paths, self.sources)

    @cached_property
    def wildcards(self) -> dict[str, str]:
        """The values that each wildcard may have."""
        cells = [*self.runs.cells, *self.runs.adversaries]
        return {
            "dataset": one_of(self.study.datasets),
            "variant": self.whole,
            "model": one_of([*self.study.models, *self.resolved.derived]),
            "seeds": one_of({cell.seeds for cell in cells}),
            "measures": one_of(self.groups.names),
            "protocol": one_of(self.study.protocols),
            "table": one_of(self.parts.tables),
        }

    @cached_property
    def whole(self) -> str:
        """The variants that are trained on as they stand: plain, and those with a known truth."""
        return one_of([PLAIN, *self.resolved.manipulated])

    @cached_property
    def masked(self) -> str:
        """The variants whose words are masked."""
        return rf"(roar|recursive)/(relative|absolute)/({one_of(self.study.measures)})/\d+"

    @cached_property
    def positions(self) -> str:
        """The variants of which nothing is left but which words are masked."""
        return rf"positions/({PLAIN}|{self.masked})"

    @cached_property
    def explained(self) -> str:
        """The variants whose models are explained."""
        return f"{self.whole}|{UNMASKED}|{self.masked}"

    @cached_property
    def scoring(self) -> dict[str, str]:
        """The rules that score: protocols that need no GPU, and those that query the models."""
        gpu = {name: bool(self.resolved.declarations["protocol", name].gpu) for name in self.study.protocols}
        rules = {"score": False, "score_models": True}
        return {rule: one_of(name for name in gpu if gpu[name] == asks) for rule, asks in rules.items()}

    # Tables and figures.

    def table_params(self, table: str) -> dict[str, Any]:
        """What the job of a table is told: the object that makes it, the keys of its files, and facts."""
        declaration = self.parts.tables[table]
        protocol = declaration.kind == "protocol"
        return {
            "object": declaration.pointer,
            "options": self.resolved.options["protocol", table] if protocol else {},
            "latex": declaration.facts.get("latex", ""),
            "files": _keys(self.parts.table_reads(table)),
            "facts": self.facts.asked([declaration]),
        }

    def table_code(self, table: str) -> str:
        """The hash of the code that makes a table."""
        return self.params.code("table", files=self.parts.code_files([self.parts.tables[table]]))

    def figure_params(self, group: str) -> dict[str, Any]:
        """What the job that draws a protocol's figures is told."""
        figures = self.parts.drawn_together[group]
        return {
            "objects": {one.name: one.pointer for one in figures},
            "plots": [plot._asdict() | {"stem": plot.stem} for plot in self.parts.plots(figures)],
            "files": _keys(self.parts.reads(figures)),
            "facts": self.facts.asked(figures),
        }

    def figure_code(self, group: str) -> str:
        """The hash of the code that draws a protocol's figures."""
        return self.params.code("figures", files=self.parts.code_files(self.parts.drawn_together[group]))

    # Targets.

    def table_files(self) -> list[str]:
        """All tables of the study."""
        return [f"results/tables/{name}.{suffix}" for name in self.parts.tables for suffix in ("parquet", "csv")]

    def figure_files(self) -> list[str]:
        """All figures of the study."""
        return [path for plot in self.parts.plots(self.parts.figures) for path in files_of(plot)]

    def page_files(self) -> list[str]:
        """The pages of the report, the overview first."""
        return [f"results/report/{page.name}.html" for page in self.parts.pages]

    def report_params(self) -> dict[str, Any]:
        """What the report's job is told."""
        options = {model: self.resolved.options["model", model] for model in self.study.models}
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
            # Encoder and attention of each model that has these options.
            "parts": {
                model: {key: of[key] for key in ("encoder", "attention") if key in of} for model, of in options.items()
            },
            "excluded": [vars(excluded) for excluded in self.runs.excluded],
            # What is said of figures and pages, which is no part of the code's hash.
            "words": {
                f"{one.kind} {one.name}": {key: one.facts[key] for key in sorted(DESCRIPTIVE[one.kind])}
                for one in [*self.parts.figures, *self.parts.pages]
            }
            | {
                f"{one.kind} {one.name}": [one.facts.get("equation"), one.facts.get("unit"), one.summary]
                for one in [*self.resolved.registry.all("metric"), *self._measures()]
            },
        }

    def _measures(self) -> list[Declaration]:
        """The registered measures behind the study's."""
        return [self.resolved.declarations["measure", name] for name in self.study.measures]

    def report_code(self) -> str:
        """The hash of the code of the report and its pages."""
        return self.params.code("report", files=[page.path for page in self.parts.pages])


def files_of(plot: Plot) -> list[str]:
    """The files of a figure."""
    return [f"results/figures/{plot.stem}.{suffix}" for suffix in FORMATS]


def _keys(files: dict[str, list[SourceFile]]) -> dict[str, list[dict[str, Any]]]:
    """The keys of each source's files, in order."""
    return {source: [file.keys for file in found] for source, found in files.items()}


def figure_label(declaration: Declaration) -> str:
    """The name of a kind of figure in words."""
    return declaration.name.replace("-", " ")
