"""The report: one HTML file that opens from the file system and loads nothing.

Text of datasets is data, never markup. It stands in a block of JSON, from which the page's script builds elements by
their text content; everything that the template writes itself is escaped. A content policy that allows only the page's
own script, by its hash, is the second lock on the same door.
"""

import base64
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from plumbline.figures.adversarial_texts import ADVERSARY
from plumbline.figures.style import measure_colour, ordered
from plumbline.registry import Registry
from plumbline.report import about, adversary, agreement, counterfactual, published, roar, tables, truth
from plumbline.report.pictures import order, picture

PAGE = Path(__file__).parent
# The colour of adversarial models, which is none of a measure that is known.
RIVAL = "#AA3377"


@dataclass(frozen=True)
class Content:
    """All that the page is made of. `figures` maps paths such as `tau-matrix/movie/cnn-tanh` to SVG text; `parts` has
    the encoder and attention of each model that has them; `variants` are the records of manipulated datasets; `others`
    are the tables of protocols that the page has no section for, such as a user's own."""

    study: dict[str, Any]
    cells: list[dict[str, Any]]
    excluded: list[dict[str, Any]]
    summaries: list[dict[str, Any]]
    performance: pd.DataFrame
    reproduction: pd.DataFrame
    timings: pd.DataFrame
    agreement: pd.DataFrame | None = None
    permutation: pd.DataFrame | None = None
    adversarial_attention: pd.DataFrame | None = None
    adversary: pd.DataFrame | None = None
    seed_variance: pd.DataFrame | None = None
    roar: pd.DataFrame | None = None
    faithfulness: pd.DataFrame | None = None
    ground_truth: pd.DataFrame | None = None
    rationales: pd.DataFrame | None = None
    others: dict[str, pd.DataFrame] = field(default_factory=dict)
    figures: dict[str, str] = field(default_factory=dict)
    parts: dict[str, dict[str, str]] = field(default_factory=dict)
    examples: list[dict[str, Any]] = field(default_factory=list)
    masked: list[dict[str, Any]] = field(default_factory=list)
    variants: list[dict[str, Any]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)


def page(content: Content) -> str:
    """The whole page."""
    registry = Registry(content.study.get("plugins", []))
    classes = {summary["dataset"]: summary["classes"] for summary in content.summaries}
    pictures = [picture(path, svg, content.parts) for path, svg in sorted(content.figures.items())]
    datasets, models = list(content.study["datasets"]), list(content.study["models"])
    measures = ordered(content.study["measures"])
    script = (PAGE / "page.js").read_text(encoding="utf-8")
    data = {
        "measures": {measure: measure_colour(measure) for measure in measures},
        "adversary": ADVERSARY,
        "attention": measure_colour("attention"),
        "rival": RIVAL,
        "agreement": None if content.agreement is None else agreement.all_rows(content.agreement, classes),
        "examples": content.examples,
        "masked": content.masked,
    }
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string((PAGE / "page.html").read_text(encoding="utf-8")).render(
        study=content.study,
        seeds=about.seeds_of(content.study),
        adversaries=about.entries_of(content.study, "adversaries"),
        protocols=about.entries_of(content.study, "protocols"),
        measures=measures,
        colour=measure_colour,
        datasets=about.datasets_table(content.summaries),
        manipulations=about.manipulations_table(content.variants),
        partial=about.partial(content.summaries),
        left_out=about.left_out(content.summaries),
        models=about.models_table(content.study, content.cells),
        excluded=sorted({line["reason"] for line in content.excluded}),
        verdict=published.verdict(content.reproduction),
        reproduction=published.reproduction_table(content.reproduction, classes),
        performance=tables.performance_table(content.performance),
        overview=None if content.agreement is None else agreement.overview(content.agreement),
        agreement=content.agreement is not None,
        permutation=None if content.permutation is None else counterfactual.permutation_overview(content.permutation),
        adversarial_attention=None
        if content.adversarial_attention is None
        else counterfactual.adversarial_overview(content.adversarial_attention),
        adversary=None if content.adversary is None else adversary.adversary_overview(content.adversary),
        seed_variance=None
        if content.seed_variance is None
        else adversary.seed_variance_overview(content.seed_variance),
        faithfulness=None if content.faithfulness is None else roar.faithfulness_table(content.faithfulness),
        leakage=None if content.roar is None else roar.leakage_table(content.roar, content.faithfulness),
        costs=roar.cost_table(content.timings),
        masked=bool(content.masked),
        truth=None if content.ground_truth is None else truth.truth_table(content.ground_truth),
        rationales=None if content.rationales is None else truth.rationales_table(content.rationales),
        others={name: tables.any_table(name, frame) for name, frame in sorted(content.others.items())},
        by_cell=sorted(
            (picture for picture in pictures if picture.model),
            key=lambda picture: (datasets.index(picture.dataset), models.index(picture.model), order(picture.kind)),
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


def embedded(value: Any) -> Markup:
    """Plain values as JSON that may stand inside a script element: no character of it can end or open one."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
