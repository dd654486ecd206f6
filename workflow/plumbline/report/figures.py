"""Figures of the report: dataset, model and caption of each, and its minified SVG."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from plumbline.registry import Declaration

# The spelling of words in their names.
SPELLING = {"tau": "τ", "jsd": "JSD", "tvd": "TVD", "attefa": "AtteFa", "roar": "ROAR"}


def kind_title(kind: str) -> str:
    """The name of a kind of figure in words."""
    words = " ".join(SPELLING.get(word, word) for word in kind.split("-"))
    return words if words[0] in "τ" else words[0].upper() + words[1:]


# A wider figure, in pixels, takes the whole width of a page.
WIDE = 620


@dataclass(frozen=True)
class ReportFigure:
    """A figure of a page; dataset and model are empty if it covers the whole study."""

    kind: str
    experiment: str
    caption: str
    source: str
    width: int
    height: int
    dataset: str
    model: str
    encoder: str
    attention: str

    @property
    def wide(self) -> bool:
        """Whether it takes the whole width of a page."""
        return self.width > WIDE

    @property
    def title(self) -> str:
        """Its kind, dataset and model."""
        return ", ".join(filter(None, [kind_title(self.kind), self.dataset, self.model]))


def report_figure(
    path: str, svg: str, figure: Declaration, parts: Mapping[str, Mapping[str, str]] | None = None
) -> ReportFigure:
    """A figure by its path below the folder of figures; `parts` has the encoder and attention of models that have them.
    A model without an encoder counts as its own encoder."""
    name, *cell = path.split("/")
    # The size is set before the image loads, so that the page does not jump. A point is 4/3 pixels; a screen is read
    # from further away than paper, so figures are a quarter larger.
    size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', svg)
    width, height = (round(float(points) * 4 / 3 * 1.25) for points in (size.groups() if size else ("480", "360")))
    parts = parts or {}
    dataset, model = ["", *cell] if len(cell) == 1 and cell[0] in parts else [*cell, "", ""][:2]
    model_parts = parts.get(model, {})
    return ReportFigure(
        name,
        figure.experiment,
        figure.summary,
        f"figures/{quote(path)}.svg",
        width,
        height,
        dataset,
        model,
        encoder=model_parts.get("encoder", model),
        attention=model_parts.get("attention", "none" if model else ""),
    )


def minified(svg: str) -> str:
    """The same figure in a smaller file: a report may have hundreds of figures.

    Coordinates are truncated to a hundredth of a point, and the position of a glyph becomes an attribute.
    """
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<!DOCTYPE[^>]*>|<\?xml[^>]*\?>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"scale\([^)]*\)|(\d+\.\d\d)\d+", lambda match: match[1] or match[0], svg)
    svg = re.sub(r'<use xlink:href="([^"]*)" transform="translate\(([-\d.]+) 0\)"', r'<use href="\1" x="\2"', svg)
    # Only the ids of glyphs are referred to.
    svg = re.sub(r' id="[a-z0-9]+_\d+"', "", svg)
    svg = re.sub(r'(id="|href="#)DejaVuSans-', r"\1", svg)
    svg = re.sub(r"\s*\n\s*", " ", svg.strip())
    svg = re.sub(r" ?\b([MLQCz]) (?=[-\d\"MLQC])", r"\1", svg)
    return svg.replace("> <", "><")
