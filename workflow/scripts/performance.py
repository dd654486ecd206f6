"""Score the predictions of all cells."""

from plumbline.protocols.performance.table import performance
from plumbline.runtime.job import job
from plumbline.store import read_table
from plumbline.tables.export import write_everywhere

with job(snakemake):
    tables = [read_table(path, "predictions") for path in snakemake.input.predictions]
    rows = performance(snakemake.params.cells, tables, snakemake.params.least_above_chance)
    write_everywhere(snakemake.output, "performance", rows)
