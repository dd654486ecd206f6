"""Gather what masking words and training anew cost: the test scores of every point of every curve."""

from plumbline.job import job
from plumbline.store import read_table
from plumbline.tables.export import write_everywhere
from plumbline.tables.performance import performance
from plumbline.tables.roar import roar_rows

with job(snakemake):
    tables = (read_table(path, "predictions") for path in snakemake.input.predictions)
    scores = performance(snakemake.params.cells, tables)
    write_everywhere(snakemake.output, "roar", roar_rows(snakemake.params.points, scores))
