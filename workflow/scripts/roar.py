"""Gather what masking words and training anew cost: the test scores of every point of every curve."""

from plumbline.protocols.performance.table import performance
from plumbline.protocols.roar.table import roar_rows
from plumbline.runtime.job import job
from plumbline.store import read_table
from plumbline.tables.export import write_everywhere

with job(snakemake):
    tables = (read_table(path, "predictions") for path in snakemake.input.predictions)
    scores = performance(snakemake.params.cells, tables)
    write_everywhere(snakemake.output, "roar", roar_rows(snakemake.params.points, scores))
