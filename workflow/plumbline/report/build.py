"""The report: a folder of pages that open from the file system and load nothing from elsewhere.

Texts of datasets are data, never markup: they are in blocks of JSON and in data files, from which scripts set the text
content of elements; templates escape everything they write. As a second protection, a content security policy allows
only the scripts next to the pages.
"""

import shutil
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from plumbline.figures.conventions import measure_colour
from plumbline.registry import Registry, load
from plumbline.report.content import Content
from plumbline.report.embed import embedded
from plumbline.report.figures import ReportFigure, kind_title, minified, report_figure
from plumbline.report.page import Page
from plumbline.store import write_text

HERE = Path(__file__).parent


def write_site(folder: Path, content: Content, names: Sequence[str]) -> None:
    """Write the pages of these names, their assets and the minified figures."""
    shutil.copytree(HERE / "assets", folder / "assets", dirs_exist_ok=True)
    (folder / "figures").mkdir(exist_ok=True)
    for path, svg in content.figures.items():
        file = folder / "figures" / f"{path}.svg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(minified(svg), encoding="utf-8")
    for name, html in site(content, names).items():
        write_text(folder / f"{name}.html", html)


def site(content: Content, names: Sequence[str]) -> dict[str, str]:
    """The pages of these names as HTML."""
    registry = Registry(content.study.get("plugins", []))
    pages = sorted(
        (page for page in registry.all("page") if page.name in set(names)),
        key=lambda page: (page.name != "index", page.order, page.name),
    )
    contents: dict[str, Page] = {page.name: load(page.pointer)(content) for page in pages}
    figures = _figures_by_page(content, registry, names)
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(colour=measure_colour, embedded=embedded)
    return {
        page.name: environment.get_template(contents[page.name].template).render(
            page=page,
            pages=pages,
            study=content.study,
            findings={name: other.finding for name, other in contents.items() if other.finding},
            kinds=[(kind_title(kind), list(group)) for kind, group in groupby(figures[page.name], attrgetter("kind"))],
            whole={fig.kind: fig for group in figures.values() for fig in group if not fig.dataset and not fig.model},
            content=contents[page.name],
            contents=contents,
            **contents[page.name].values,
        )
        for page in pages
    }


def _figures_by_page(content: Content, registry: Registry, names: Sequence[str]) -> dict[str, list[ReportFigure]]:
    """The figures of each page by kind, then by dataset and model in the order of the study."""
    declared = {figure.name: figure for figure in registry.all("figure")}
    pages: dict[str, list[ReportFigure]] = {name: [] for name in names}
    for path, svg in content.figures.items():
        figure = declared[path.split("/")[0]]
        page = figure.page if figure.page in pages else "other" if "other" in pages else "index"
        pages.setdefault(page, []).append(report_figure(path, svg, figure, content.parts))
    order = {name: i for key in ("datasets", "models") for i, name in enumerate(content.study[key])}
    for figures in pages.values():
        figures.sort(key=lambda fig: (fig.kind, order.get(fig.dataset, -1), order.get(fig.model, -1)))
        figures.sort(key=lambda fig: declared[fig.kind].order)
    return pages
