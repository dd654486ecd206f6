"""The tables, figures, pages and criteria of a study's report, and the files that they read."""

from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from plumbline.config.resolved import Resolved
from plumbline.config.runs import Cell, Runs
from plumbline.dag.sources import SourceFile, SourceFiles
from plumbline.registry import PACKAGE, Declaration, Registry
from plumbline.runtime.provenance import module_file

FORMATS = ("svg", "pdf", "png")


class Plot(NamedTuple):
    """A figure to draw: its kind and, if it has them, its dataset and model."""

    kind: str
    dataset: str = ""
    model: str = ""

    @property
    def stem(self) -> str:
        """Its path relative to the folder of figures, without suffix."""
        return "/".join(filter(None, self))

    @property
    def files(self) -> list[str]:
        """Its files."""
        return [f"results/figures/{self.stem}.{suffix}" for suffix in FORMATS]


class Parts:
    """The parts of the report of a study."""

    def __init__(self, resolved: Resolved, runs: Runs, sources: SourceFiles) -> None:
        self._resolved, self._runs, self._sources = resolved, runs, sources
        self._registry = resolved.registry
        self._available: dict[tuple[str, str], bool] = {}

    # Tables.

    @cached_property
    def tables(self) -> dict[str, Declaration]:
        """The declaration of each table of the study; a protocol's table has the study's name of the protocol."""
        declared = {table.name: table for table in self._registry.all("table") if self._is_available(table)}
        protocols = self._resolved.study.protocols
        return declared | {name: self._resolved.declarations["protocol", name] for name in protocols}

    def table_of(self, kind: str) -> str | None:
        """The name of the study's table of a kind; None if it has none."""
        if kind in self._sources.protocols:
            return self._sources.protocols[kind]
        declaration = self._table_declarations.get(kind)
        return kind if declaration and self._is_available(declaration) else None

    @cached_property
    def _table_declarations(self) -> dict[str, Declaration]:
        return {table.name: table for table in self._registry.all("table")}

    def _is_available(self, declaration: Declaration) -> bool:
        """Whether the study has the section and the files that a table or figure needs."""
        key, section = (declaration.kind, declaration.name), declaration.of
        if key not in self._available:
            required = [source for source in declaration.reads if not source.endswith("?")]
            present = not section or bool(getattr(self._resolved.study, section))
            self._available[key] = present and all(self.files(source) for source in required)
        return self._available[key]

    def files(self, source: str) -> list[SourceFile]:
        """The files of a source, which may be a table of the study."""
        if source == "criteria":
            return [
                SourceFile({"kind": kind}, f"results/tables/{self.table_of(kind)}.parquet")
                for kind in dict.fromkeys(criterion.table for criterion in self.criteria)
            ]
        files = self._sources.files(source)
        if files is None:
            name = self.table_of(source)
            return [SourceFile({}, f"results/tables/{name}.parquet")] if name else []
        return files

    def table_reads(self, table: str) -> dict[str, list[SourceFile]]:
        """The files that a table of the study reads, by source."""
        declaration = self.tables[table]
        if declaration.kind != "protocol":
            return self.reads([declaration])
        scores = self._sources.of_cells(f"results/scores/{table}/{{cell}}.parquet", self._runs.scored[table])
        return {"scores": scores, "performance": self.files("performance")}

    def reads(self, declarations: list[Declaration]) -> dict[str, list[SourceFile]]:
        """The files that tables or figures read, by source, without sources that the study lacks."""
        sources = dict.fromkeys(source.removesuffix("?") for part in declarations for source in part.reads)
        return {source: files for source in sources if (files := self.files(source))}

    # Criteria.

    @cached_property
    def criteria(self) -> list[Declaration]:
        """The columns of the study's scorecard, in order."""
        declared = sorted(self._registry.all("criterion"), key=_order)
        return [criterion for criterion in declared if self.table_of(criterion.table)]

    # Figures.

    @cached_property
    def figures(self) -> list[Declaration]:
        """The declared figures that the study has, in order."""
        declared = sorted(self._registry.all("figure"), key=_order)
        return [figure for figure in declared if self._is_available(figure) and any(self._plots(figure))]

    @cached_property
    def figure_groups(self) -> dict[str, list[Declaration]]:
        """The figures that share a job: those of one protocol's folder, or of one plug-in."""
        groups: dict[str, list[Declaration]] = {}
        for figure in self.figures:
            group = figure.path.parent.name
            if not figure.path.is_relative_to(PACKAGE):
                # Two plug-ins may have the same file name.
                group = f"plugin_{figure.path.stem}_{self._registry.plugins.index(figure.path) + 1}"
            groups.setdefault(group, []).append(figure)
        return groups

    def plots(self, figures: list[Declaration]) -> list[Plot]:
        """The plots of declared figures."""
        return [plot for figure in figures for plot in self._plots(figure)]

    def _plots(self, declaration: Declaration) -> Iterator[Plot]:
        """A plot for each value of the figure's axes among its cells."""
        missing = self._lacks_scales(declaration) or self._lacks_pairs(declaration)
        if "whole" in declaration.only or not (declaration.per or missing):
            yield Plot(declaration.name)
        if declaration.per:
            pairs = sorted(
                {tuple(getattr(cell, axis) for axis in declaration.per) for cell in self._cells(declaration)}
            )
            for values in pairs:
                plot = Plot(declaration.name, **dict(zip(declaration.per, values, strict=True)))
                if all(self._fits(plot, declaration, condition) for condition in declaration.only):
                    yield plot

    def _lacks_scales(self, declaration: Declaration) -> bool:
        """Whether a figure needs a dataset with word vectors of several scales, which the study does not have."""
        if "vector-scale" not in declaration.only:
            return False
        prepared = self._resolved.preparations
        kinds = {
            (self._resolved.declarations["dataset", name].name, of.embedding.scale) for name, of in prepared.items()
        }
        return len(kinds) == len({kind for kind, _ in kinds})

    def _lacks_pairs(self, declaration: Declaration) -> bool:
        """Whether a figure compares pairs of measures as Jain & Wallace do, and agreement scores no such pairs.

        These are pairs of attention, gradient and leave-one-out of a BiLSTM, or attention and leave-one-out of a BiLSTM
        and of an average encoder on one dataset.
        """
        if "attention-pairs" not in declaration.only:
            return False
        # Of several entries of one registered object, the first is compared.
        names = {(kind, of.name): name for (kind, name), of in reversed(self._resolved.declarations.items())}
        models = [names.get(("model", of), "") for of in ("bilstm-tanh", "average-tanh")]
        pair = {names.get(("measure", of), "") for of in ("attention", "leave-one-out")}
        three = {*pair, names.get(("measure", "gradient"), "")}
        scored = [{cell.dataset for cell in self._sources.scored("agreement") if cell.model == of} for of in models]
        explained = [{*self._runs.measures.get(of, ())} for of in models]
        of_one = scored[0] and three <= explained[0]
        of_both = scored[0] & scored[1] and pair <= explained[0] & explained[1]
        return not (of_one or of_both)

    def _cells(self, declaration: Declaration) -> list[Cell]:
        """The cells whose datasets and models have a plot."""
        if declaration.cells == "adversaries":
            return [
                Cell(cell.dataset, cell.variant, self._resolved.derived[cell.model].base, cell.seeds)
                for cell in self._runs.adversaries
            ]
        if declaration.cells == "curves":
            return list(self._runs.curves)
        if declaration.cells == "explained":
            return [cell for cell in self._runs.cells if self._runs.measures[cell.model]]
        return self._sources.scored(declaration.cells)

    def _fits(self, plot: Plot, declaration: Declaration, condition: str) -> bool:
        """Whether the dataset and model of a plot meet a condition of its figure."""
        manipulated = self._resolved.manipulated
        variants = [
            manipulated[cell.variant]
            for cell in self._cells(declaration)
            if cell.dataset == plot.dataset and cell.variant in manipulated
        ]
        if condition in ("images", "texts"):
            return self._sources.has_images(plot.dataset) == (condition == "images")
        if condition == "visibility":
            return any(variant.level for variant in variants)
        if condition == "reassignment":
            rates = {(variant.name, variant.r) for variant in variants}
            return len(rates) > len({name for name, _ in rates})
        if condition == "traced":
            return any(cell.dataset == plot.dataset for cell in self._sources.traced)
        if condition == "shown":
            return any((cell.dataset, cell.model) == (plot.dataset, plot.model) for cell in self._sources.shown_cells)
        return condition == "whole"

    # Pages.

    @cached_property
    def pages(self) -> list[Declaration]:
        """The pages of the study's report, in order."""
        study = self._resolved.study
        measures = {self._resolved.declarations["measure", name].name for name in study.measures}
        return select_pages(self._registry, {table.name for table in self.tables.values()}, measures)

    def code_files(self, declarations: list[Declaration]) -> list[Path]:
        """The files of declarations, of their LaTeX functions and, if one requests them, of the criteria."""
        criteria = self.criteria if any("criteria" in part.facts.get("params", []) for part in declarations) else []
        latex = [_latex_file(part) for part in declarations if part.facts.get("latex")]
        return sorted({*(part.path for part in [*declarations, *criteria]), *filter(None, latex)})


def _order(declaration: Declaration) -> tuple[int, str]:
    return declaration.order, declaration.name


def _latex_file(declaration: Declaration) -> Path | None:
    """The file of the function that writes a table in LaTeX: a module of the library, or a file next to a plug-in."""
    module = declaration.facts["latex"].rpartition(":")[0].removesuffix(".py")
    neighbour = declaration.path.parent.joinpath(*module.split(".")).with_suffix(".py")
    return module_file(module) or (neighbour if neighbour.is_file() else None)


def select_pages(registry: Registry, tables: Collection[str], measures: Collection[str]) -> list[Declaration]:
    """The pages of a report in order, overview first, given the registered names of a study's tables and measures.

    A study has a page if it has one of its tables and, for `table:measure`, the measure too; `*` matches any table that
    no page names.
    """
    declared = sorted(registry.all("page"), key=lambda page: (page.name != "index", *_order(page)))
    shown = {table.partition(":")[0] for page in declared for table in page.tables} | {"performance"}

    def is_available(page: Declaration) -> bool:
        if not page.tables:
            return True
        if page.tables == ["*"]:
            return bool(set(tables) - shown)
        required = [table.partition(":") for table in page.tables]
        return any(table in tables and (not measure or measure in measures) for table, _, measure in required)

    return [page for page in declared if is_available(page)]
