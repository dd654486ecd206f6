"""Figures as the report holds them: where each belongs, what it says, and its SVG text made small."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from plumbline.registry import Declaration

# How words of their names are written.
SPELT = {"tau": "τ", "jsd": "JSD", "tvd": "TVD", "attefa": "AtteFa", "roar": "ROAR"}


def spelt(kind: str) -> str:
    """The name of a kind in words."""
    words = " ".join(SPELT.get(word, word) for word in kind.split("-"))
    return words if words[0] in "τ" else words[0].upper() + words[1:]


# So many pixels are wider than half a page.
WIDE = 620


@dataclass(frozen=True)
class ReportFigure:
    """A figure as a page shows it; what it is about is empty where it is about all of the study."""

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
        """What it is about, in words."""
        return ", ".join(filter(None, [spelt(self.kind), self.dataset, self.model]))


def report_figure(
    path: str, svg: str, figure: Declaration, parts: Mapping[str, Mapping[str, str]] | None = None
) -> ReportFigure:
    """A figure by its path below the folder of figures; `parts` has the encoder and attention of each model, if it has
    them. A model without an encoder counts as one."""
    name, *where = path.split("/")
    # The size is known before the image is drawn, so that the page does not jump. A point is 4/3 pixels; a screen is
    # read from further away than paper, so that figures are a quarter larger.
    size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', svg)
    width, height = (round(float(points) * 4 / 3 * 1.25) for points in (size.groups() if size else ("480", "360")))
    of_model = len(where) == 1 and where[0] in (parts or {})
    dataset, model = ["", *where] if of_model else [*where, "", ""][:2]
    of = (parts or {}).get(model, {})
    return ReportFigure(
        name,
        figure.experiment,
        figure.caption,
        file_of(path),
        width,
        height,
        dataset,
        model,
        encoder=of.get("encoder", model),
        attention=of.get("attention", "none" if model else ""),
    )


def file_of(path: str) -> str:
    """The address of a figure's file from a page."""
    return f"figures/{quote(path)}.svg"


def slim(svg: str) -> str:
    """The same figure in fewer letters, as Matplotlib writes many: a report may hold hundreds of figures.

    Places are cut to a hundredth of a point, and a letter's place is an attribute of its own.
    """
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<!DOCTYPE[^>]*>|<\?xml[^>]*\?>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"scale\([^)]*\)|(\d+\.\d\d)\d+", lambda found: found[1] or found[0], svg)
    svg = re.sub(r'<use xlink:href="([^"]*)" transform="translate\(([-\d.]+) 0\)"', r'<use href="\1" x="\2"', svg)
    # Nothing refers to the parts of a figure by these names; to letters it does.
    svg = re.sub(r' id="[a-z0-9]+_\d+"', "", svg)
    svg = re.sub(r'(id="|href="#)DejaVuSans-', r"\1", svg)
    svg = re.sub(r"\s*\n\s*", " ", svg.strip())
    svg = re.sub(r" ?\b([MLQCz]) (?=[-\d\"MLQC])", r"\1", svg)
    return svg.replace("> <", "><")
