"""The report: a folder of pages that open from the file system and load nothing from elsewhere.

Text of datasets is data, never markup. It stands in blocks of JSON and in files of data, from which scripts build
elements by their text content; everything that templates write themselves is escaped. A content policy that allows only
scripts that lie beside the pages is the second lock on the same door.
"""

import shutil
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from plumbline.figures.conventions import measure_colour
from plumbline.registry import Registry, load
from plumbline.report.content import Content
from plumbline.report.embed import embedded
from plumbline.report.figures import ReportFigure, report_figure, slim, spelt
from plumbline.report.page import Page
from plumbline.store import write_text

HERE = Path(__file__).parent


def write_site(folder: Path, content: Content, names: Sequence[str]) -> None:
    """The pages of these names, their assets and the figures, slimmed."""
    shutil.copytree(HERE / "assets", folder / "assets", dirs_exist_ok=True)
    (folder / "figures").mkdir(exist_ok=True)
    for path, svg in content.figures.items():
        file = folder / "figures" / f"{path}.svg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(slim(svg), encoding="utf-8")
    for name, html in site(content, names).items():
        write_text(folder / f"{name}.html", html)


def site(content: Content, names: Sequence[str]) -> dict[str, str]:
    """The pages of these names as HTML."""
    registry = Registry(content.study.get("plugins", []))
    pages = sorted(
        (one for one in registry.all("page") if one.name in set(names)),
        key=lambda one: (one.name != "index", one.order, one.name),
    )
    contents: dict[str, Page] = {page.name: load(page.pointer)(content) for page in pages}
    pictures = _by_page(content, registry, names)
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
            findings={name: told.finding for name, told in contents.items() if told.finding},
            kinds=[(spelt(kind), list(some)) for kind, some in groupby(pictures[page.name], lambda one: one.kind)],
            whole={one.kind: one for some in pictures.values() for one in some if not one.dataset and not one.model},
            content=contents[page.name],
            contents=contents,
            **contents[page.name].values,
        )
        for page in pages
    }


def _by_page(content: Content, registry: Registry, names: Sequence[str]) -> dict[str, list[ReportFigure]]:
    """The figures of each page by kind, then by dataset and model as the study names them."""
    declared = {one.name: one for one in registry.all("figure")}
    found: dict[str, list[ReportFigure]] = {name: [] for name in names}
    for path, svg in content.figures.items():
        figure = declared[path.split("/")[0]]
        page = figure.page if figure.page in found else "other" if "other" in found else "index"
        found.setdefault(page, []).append(report_figure(path, svg, figure, content.parts))
    places = {name: i for names in ("datasets", "models") for i, name in enumerate(content.study[names])}
    for pictures in found.values():
        pictures.sort(
            key=lambda one: (
                declared[one.kind].order,
                one.kind,
                places.get(one.dataset, -1),
                places.get(one.model, -1),
            )
        )
    return found
