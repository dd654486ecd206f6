"""The declared parts of the report that a study has: tables, figures, pages and criteria, with what each reads."""

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
    """A figure to draw: its kind, and the dataset and model that it is about, if it is about one."""

    kind: str
    dataset: str = ""
    model: str = ""

    @property
    def stem(self) -> str:
        """Its path below the folder of figures, without suffix."""
        return "/".join(filter(None, self))


class Parts:
    """The parts of the report of a study."""

    def __init__(self, resolved: Resolved, runs: Runs, sources: SourceFiles) -> None:
        self._resolved, self._runs, self._sources = resolved, runs, sources
        self._registry = resolved.registry

    # Tables.

    @cached_property
    def tables(self) -> dict[str, Declaration]:
        """The declaration of each table of the study by its name, which of a protocol is the study's own."""
        study = self._resolved.study
        declared = {one.name: one for one in self._registry.all("table") if self._has(one)}
        return declared | {name: self._resolved.declarations["protocol", name] for name in study.protocols}

    def table_of(self, kind: str) -> str | None:
        """The name of the study's table of a kind; None if it has none."""
        if kind in self._sources.protocols:
            return self._sources.protocols[kind]
        declaration = self._table_declarations.get(kind)
        return kind if declaration and self._has(declaration) else None

    @cached_property
    def _table_declarations(self) -> dict[str, Declaration]:
        return {one.name: one for one in self._registry.all("table")}

    @cached_property
    def kinds(self) -> set[str]:
        """The kinds of the study's tables."""
        return {declaration.name for declaration in self.tables.values()}

    def _has(self, declaration: Declaration) -> bool:
        """Whether a study has what a table or figure is made from."""
        known = self._known.get((declaration.kind, declaration.name))
        if known is None:
            needed = [source for source in declaration.reads if not source.endswith("?")]
            known = self._is_there(declaration.of) and all(self.files(source) for source in needed)
            self._known[declaration.kind, declaration.name] = known
        return known

    @cached_property
    def _known(self) -> dict[tuple[str, str], bool]:
        return {}

    def _is_there(self, section: str) -> bool:
        return not section or bool(getattr(self._resolved.study, section))

    def files(self, source: str) -> list[SourceFile]:
        """The files of a source, be it a table of the study or another."""
        if source == "criteria":
            return [
                SourceFile({"kind": kind}, f"results/tables/{self.table_of(kind)}.parquet")
                for kind in dict.fromkeys(one.table for one in self.criteria)
            ]
        found = self._sources.files(source)
        if found is None:
            name = self.table_of(source)
            return [SourceFile({}, f"results/tables/{name}.parquet")] if name else []
        return found

    def table_reads(self, table: str) -> dict[str, list[SourceFile]]:
        """The files that a table of the study is made from, by source."""
        declaration = self.tables[table]
        if declaration.kind != "protocol":
            return self.reads([declaration])
        scores = self._sources.of_cells(f"results/scores/{table}/{{cell}}.parquet", self._runs.scored[table])
        return {"scores": scores, "performance": self.files("performance")}

    def reads(self, declarations: list[Declaration]) -> dict[str, list[SourceFile]]:
        """The files that tables or figures read, by source; none of those that the study lacks."""
        named = dict.fromkeys(source.removesuffix("?") for one in declarations for source in one.reads)
        return {source: found for source in named if (found := self.files(source))}

    # Criteria.

    @cached_property
    def criteria(self) -> list[Declaration]:
        """The columns of the study's scorecard, in order."""
        declared = sorted(self._registry.all("criterion"), key=lambda one: (one.order, one.name))
        return [one for one in declared if self.table_of(one.table)]

    # Figures.

    @cached_property
    def figures(self) -> list[Declaration]:
        """The kinds of figures that the study has, in order."""
        declared = sorted(self._registry.all("figure"), key=lambda one: (one.order, one.name))
        return [one for one in declared if self._has(one) and any(True for _ in self._plots(one))]

    @cached_property
    def drawn_together(self) -> dict[str, list[Declaration]]:
        """The kinds of figures that share a job: those of one protocol's folder, or of one plug-in."""
        found: dict[str, list[Declaration]] = {}
        for one in self.figures:
            own = one.path.is_relative_to(PACKAGE)
            # Two plug-ins may have files of one name.
            plugin = f"plugin_{one.path.stem}_{self._registry.plugins.index(one.path) + 1}" if not own else ""
            found.setdefault(plugin or one.path.parent.name, []).append(one)
        return found

    def plots(self, figures: list[Declaration]) -> list[Plot]:
        """What is drawn of kinds of figures."""
        return [plot for one in figures for plot in self._plots(one)]

    def _plots(self, declaration: Declaration) -> Iterator[Plot]:
        """A figure for each value of its axes among the cells that it is about."""
        if not declaration.per or "whole" in declaration.only:
            yield Plot(declaration.name)
        if declaration.per:
            pairs = sorted(
                {tuple(getattr(cell, axis) for axis in declaration.per) for cell in self._cells(declaration)}
            )
            for values in pairs:
                plot = Plot(declaration.name, **dict(zip(declaration.per, values, strict=True)))
                if all(self._fits(plot, declaration, condition) for condition in declaration.only):
                    yield plot

    def _cells(self, declaration: Declaration) -> list[Cell]:
        """The cells whose datasets and models have a figure."""
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
        """Whether a dataset and model has what a figure shows."""
        here = [cell for cell in self._cells(declaration) if cell.dataset == plot.dataset]
        made = [self._resolved.manipulated[cell.variant] for cell in here if cell.variant in self._resolved.manipulated]
        if condition in ("images", "texts"):
            return self._sources.has_images(plot.dataset) == (condition == "images")
        if condition == "visibility":
            return any(variant.level for variant in made)
        if condition == "reassignment":
            kept = {variant.name: {other.r for other in made if other.name == variant.name} for variant in made}
            return any(len(some) > 1 for some in kept.values())
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
        return pages_of(self._registry, self.kinds, measures)

    def code_files(self, declarations: list[Declaration]) -> list[Path]:
        """The files of declarations, of the functions that print them, and of the criteria where one asks for these."""
        asked = any("criteria" in one.facts.get("params", []) for one in declarations)
        printing = [_printer(one) for one in declarations if one.facts.get("latex")]
        files = {one.path for one in [*declarations, *(self.criteria if asked else [])]}
        return sorted({*files, *filter(None, printing)})


def _printer(declaration: Declaration) -> Path | None:
    """The file of the function that prints a table in LaTeX: a module of the library's, or one beside a plug-in."""
    module = declaration.facts["latex"].rpartition(":")[0].removesuffix(".py")
    beside = declaration.path.parent.joinpath(*module.split(".")).with_suffix(".py")
    return module_file(module) or (beside if beside.is_file() else None)


def page_place(page: Declaration) -> tuple[bool, int, str]:
    """The place of a page in the menu; the overview is first whatever others say."""
    return page.name != "index", page.order, page.name


def pages_of(registry: Registry, tables: Collection[str], measures: Collection[str]) -> list[Declaration]:
    """The pages of a report, in order, by the kinds of a study's tables and measures.

    A page is there if one of its tables is; `table:measure` counts if there is such a measure too. `*` stands for any
    table that no page names.
    """
    declared = sorted(registry.all("page"), key=page_place)
    shown = {kind.partition(":")[0] for one in declared for kind in one.tables} | {"performance"}

    def is_there(page: Declaration) -> bool:
        if not page.tables:
            return True
        if page.tables == ["*"]:
            return bool(set(tables) - shown)
        wanted = [kind.partition(":") for kind in page.tables]
        return any(table in tables and (not measure or measure in measures) for table, _, measure in wanted)

    return [one for one in declared if is_there(one)]
