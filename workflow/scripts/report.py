"""Build the report and the study's manifest."""

from pathlib import Path

from plumbline.report.build import write_site
from plumbline.report.content import Content
from plumbline.report.inputs import read_figures, read_tables
from plumbline.report.manifest import manifest
from plumbline.runtime.job import job, versions
from plumbline.store import read_record, write_json

with job(snakemake):
    study, excluded = snakemake.params.study, snakemake.params.excluded
    tables = read_tables(snakemake.input.tables)
    content = Content(
        study,
        snakemake.params.cells,
        excluded,
        summaries=[read_record(path) for path in snakemake.input.summaries],
        tables=tables,
        figures=read_figures(snakemake.input.figures),
        parts=snakemake.params.parts,
        variants=[read_record(path) for path in snakemake.input.variants],
        versions=versions(),
    )
    pages = [Path(path).stem for path in (snakemake.output.report, *snakemake.output.pages)]
    write_site(Path(snakemake.output.report).parent, content, pages)
    write_json(snakemake.output.manifest, manifest(study, excluded, tables["timings"], content.summaries))
