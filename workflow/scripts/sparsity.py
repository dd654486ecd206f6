"""Measure how few words hold most of a text's importance."""

from plumbline.protocols.roar.sparsity import sparsity_table
from plumbline.runtime.job import job
from plumbline.store import read_table
from plumbline.tables.export import write_everywhere

with job(snakemake):
    paths = snakemake.input.importances
    tables = (read_table(path, "attributions", ["seed", "split", "scores"]) for path in paths)
    write_everywhere(snakemake.output, "sparsity", sparsity_table(snakemake.params.cells, tables))
