"""The pages of every report: overview, explorer, timings, about, and tables without a page of their own."""

from markupsafe import Markup, escape

from plumbline.figures.conventions import ordered
from plumbline.protocols.overview import about
from plumbline.protocols.scorecard.verdict import verdict
from plumbline.registry import Registry, page
from plumbline.report import tables
from plumbline.report.content import Content
from plumbline.report.page import Page, Section
from plumbline.report.tables import number


@page("index", title="Overview", group="", tables=["performance"], order=0)
def index_page(content: Content) -> Page:
    """Datasets, models, measures and results of the study."""
    frames = content.tables
    values = {
        "seeds": about.seeds_of(content.study),
        "measures": ordered(content.study["measures"]),
        "adversaries": about.entries_of(content.study, "adversaries"),
        "protocols": about.entries_of(content.study, "protocols"),
        "datasets": about.datasets_table(content.summaries),
        "manipulations": about.manipulations_table(content.variants),
        "partial": about.partial_data_warnings(content.summaries),
        "left_out": about.dropped_texts(content.summaries),
        "models": about.models_table(content.study, content.cells),
        "performance": tables.performance_overview(frames["performance"]),
        "verdict": verdict(frames, content.random),
        "excluded": sorted({line["reason"] for line in content.excluded}),
        "seconds": number(frames["timings"]["seconds"].sum(), 0),
    }
    return Page(template="index.html", values=values)


@page("other", title="Other protocols", tables=["*"], order=80)
def other_page(content: Content) -> Page:
    """Tables of protocols without a page of their own."""
    registry = Registry(content.study.get("plugins", []))
    shown = {kind.partition(":")[0] for declared in registry.all("page") for kind in declared.tables} | {"performance"}
    sections = [
        Section(
            f"of-{kind}",
            kind.replace("_", " ").capitalize(),
            tables={f"table-{kind}": tables.any_table(kind, content.tables[kind])},
        )
        for kind in sorted(set(content.tables) - shown)
    ]
    return Page(sections)


@page("explorer", title="Explorer", group="", order=100)
def explorer_page(content: Content) -> Page:
    """Single instances with the importances of all measures."""
    app = Markup('<div id="explorer"><noscript><p>The explorer needs JavaScript.</p></noscript></div>')
    scripts = ("explorer/index.js", "assets/explorer.js")
    return Page([Section("", "", html=app)], scripts=scripts, styles=("explorer.css",))


@page("timings", title="Timings", group="", tables=["timings"], order=110)
def timings_page(content: Content) -> Page:
    """Run time and memory of the jobs."""
    frame = content.tables["timings"]
    seconds = number(frame["seconds"].sum(), 0)
    text = f"The jobs below took {seconds} seconds in total, without start-up."
    return Page(
        [
            Section("rules", "By rule", text, {"timings": tables.timings_overview(frame)}),
            Section("runs", "All runs", tables={"jobs": tables.jobs_overview(frame)}),
        ]
    )


LEAD = (
    "plumbline measures how faithful explanations of neural models are. The tables of these pages are in "
    "results/tables as Parquet and CSV, and those printed in the papers also as LaTeX; the figures are in "
    "results/figures as SVG, PDF and PNG; the record of the run is in results/manifest.json. The folder of this report "
    "can be moved and shared on its own. It contains texts of the datasets."
)


@page("about", title="About", group="", order=120)
def about_page(content: Content) -> Page:
    """Measures, metrics and software."""
    registry = Registry(content.study.get("plugins", []))
    versions = [f"<span>{escape(name)} {escape(version)}</span>" for name, version in sorted(content.versions.items())]
    software = Markup(f'<p class="versions">{" ".join(versions)}</p>')
    return Page(
        [
            Section("of-measures", "Measures", tables={"measures": about.measures_table(registry, content.study)}),
            Section("of-metrics", "Metrics", tables={"metrics": about.metrics_table(registry)}),
            Section("software", "Software", html=software),
        ],
        lead=LEAD,
    )
