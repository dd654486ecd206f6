"""List the published numbers that rest on quirks, with ours under both settings."""

from plumbline.job import job
from plumbline.store import read_table
from plumbline.tables.export import write_everywhere
from plumbline.tables.quirks import quirk_rows
from plumbline.tables.studies import Names

with job(snakemake):
    names = Names(**snakemake.params.names)
    kinds = ("reproduction", "performance", "agreement", "sparsity")
    tables = {kind: read_table(path, kind).to_pandas() for kind in kinds if (path := getattr(snakemake.input, kind))}
    write_everywhere(snakemake.output, "quirks", quirk_rows(names=names, **tables))
