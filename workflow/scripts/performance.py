"""Score the predictions of all cells."""

from plumbline.job import job
from plumbline.store import read_table
from plumbline.tables.export import write_everywhere
from plumbline.tables.performance import performance

with job(snakemake):
    tables = [read_table(path, "predictions") for path in snakemake.input.predictions]
    write_everywhere(snakemake.output, "performance", performance(snakemake.params.cells, tables))
