"""Build the report and the study's manifest."""

from plumbline.figures.adversarial_texts import SECONDS
from plumbline.job import job, versions
from plumbline.report.build import Content, page
from plumbline.report.examples import collect
from plumbline.report.inputs import read_blocks, read_figures, read_tables
from plumbline.report.manifest import manifest
from plumbline.store import read_json, read_table, write_json, write_text

with job(snakemake):
    study, cells, excluded = snakemake.params.study, snakemake.params.cells, snakemake.params.excluded
    tables = read_tables(snakemake.input.tables)
    summaries = [read_json(path) for path in snakemake.input.summaries]
    names = [summary["dataset"] for summary in summaries]
    instances = {
        name: read_table(path, "instances") for name, path in zip(names, snakemake.input.instances, strict=True)
    }
    blocks = read_blocks(
        cells,
        snakemake.input.predictions,
        snakemake.input.importances,
        snakemake.input.adversaries,
        snakemake.input.attention,
        snakemake.input.rivals,
    )
    seconds = {name: SECONDS.get(task, "second text") for name, task in snakemake.params.tasks.items()}
    split = "test" if "test" in study["explain"] else study["explain"][0]
    examples = collect(blocks, summaries, instances, split, study["report"]["examples"], seconds)
    figures = read_figures(snakemake.input.figures)
    kinds = ("performance", "reproduction", "timings", "agreement", "permutation", "adversarial_attention", "adversary")
    shown = {name: tables.get(name) for name in (*kinds, "seed_variance")}
    others = {kind: table for kind, table in tables.items() if kind not in shown}
    content = Content(
        study,
        cells,
        excluded,
        summaries,
        others=others,
        figures=figures,
        parts=snakemake.params.parts,
        examples=examples,
        versions=versions(),
        **shown,
    )
    write_text(snakemake.output.report, page(content))
    write_json(snakemake.output.manifest, manifest(study, excluded, tables["timings"]))
