"""The report: one HTML file that opens from the file system and loads nothing.

Text of datasets is data, never markup. It stands in a block of JSON, from which the page's script builds elements by
their text content; everything that the template writes itself is escaped. A content policy that allows only the page's
own script, by its hash, is the second lock on the same door.
"""

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from plumbline.figures.style import measure_colour, ordered
from plumbline.registry import Registry
from plumbline.report import about, agreement, published, tables

PAGE = Path(__file__).parent

# Kinds of figures: a caption, and what a person who cannot see the figure should know.
CAPTIONS = {
    "tau-histogram": "Kendall τ between attention and each other measure, text by text, by predicted class.",
    "tau-matrix": "Mean Kendall τ of every pair of measures.",
    "mean-differences": "Whose ranking agrees more with leave-one-out, and where (Jain & Wallace's Figures 3 to 5).",
    "rule-graph": "The rules of the workflow. An arrow runs from a rule to one that needs its files.",
}


@dataclass(frozen=True)
class Picture:
    """A figure as the page shows it; `dataset` and `model` are empty where it is about the whole study."""

    kind: str
    dataset: str
    model: str
    caption: str
    source: str
    width: int
    height: int


@dataclass(frozen=True)
class Content:
    """All that the page is made of. `figures` maps paths such as `tau-matrix/movie/cnn-tanh` to SVG text; `others` are
    the tables of protocols that the page has no section for, such as a user's own."""

    study: dict[str, Any]
    cells: list[dict[str, Any]]
    excluded: list[dict[str, Any]]
    summaries: list[dict[str, Any]]
    performance: pd.DataFrame
    reproduction: pd.DataFrame
    timings: pd.DataFrame
    agreement: pd.DataFrame | None = None
    others: dict[str, pd.DataFrame] = field(default_factory=dict)
    figures: dict[str, str] = field(default_factory=dict)
    examples: list[dict[str, Any]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)


def page(content: Content) -> str:
    """The whole page."""
    registry = Registry(content.study.get("plugins", []))
    classes = {summary["dataset"]: summary["classes"] for summary in content.summaries}
    pictures = [picture(path, svg) for path, svg in sorted(content.figures.items())]
    datasets, models = list(content.study["datasets"]), list(content.study["models"])
    measures = ordered(content.study["measures"])
    script = (PAGE / "page.js").read_text(encoding="utf-8")
    data = {
        "measures": {measure: measure_colour(measure) for measure in measures},
        "agreement": None if content.agreement is None else agreement.all_rows(content.agreement, classes),
        "examples": content.examples,
    }
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string((PAGE / "page.html").read_text(encoding="utf-8")).render(
        study=content.study,
        seeds=about.seeds_of(content.study),
        measures=measures,
        colour=measure_colour,
        datasets=about.datasets_table(content.summaries),
        left_out=about.left_out(content.summaries),
        models=about.models_table(content.study, content.cells),
        excluded=sorted({line["reason"] for line in content.excluded}),
        verdict=published.verdict(content.reproduction),
        reproduction=published.reproduction_table(content.reproduction, classes),
        performance=tables.performance_table(content.performance),
        overview=None if content.agreement is None else agreement.overview(content.agreement),
        agreement=content.agreement is not None,
        others={name: tables.any_table(name, frame) for name, frame in sorted(content.others.items())},
        by_cell=sorted(
            (picture for picture in pictures if picture.model),
            key=lambda picture: (datasets.index(picture.dataset), models.index(picture.model), picture.kind),
        ),
        overall=[picture for picture in pictures if not picture.model and picture.kind != "rule-graph"],
        rule_graph=[picture for picture in pictures if picture.kind == "rule-graph"],
        examples=bool(content.examples),
        timings=tables.timings_table(content.timings),
        jobs=tables.jobs_table(content.timings),
        seconds=tables.number(content.timings["seconds"].sum(), 0),
        measures_table=about.measures_table(registry, content.study),
        metrics_table=about.metrics_table(registry),
        versions=content.versions,
        style=Markup((PAGE / "page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=embedded(data),
    )


def picture(path: str, svg: str) -> Picture:
    """A figure by its path below the folder of figures. As an image its ids cannot clash with another's."""
    kind, *where = path.split("/")
    dataset, model = where if len(where) == 2 else ("", "")
    caption = CAPTIONS.get(kind, kind.replace("-", " "))
    source = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
    # The size is known before the image is drawn, so that the page does not jump. A point is 4/3 pixels; a screen is
    # read from further away than paper, so that figures are a quarter larger.
    size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', svg)
    width, height = (round(float(points) * 4 / 3 * 1.25) for points in (size.groups() if size else ("480", "360")))
    return Picture(kind, dataset, model, caption, source, width, height)


def embedded(value: Any) -> Markup:
    """Plain values as JSON that may stand inside a script element: no character of it can end or open one."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
