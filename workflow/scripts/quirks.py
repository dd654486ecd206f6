"""List the published numbers that rest on quirks, with ours under both settings."""

from plumbline.papers.quirks import quirk_rows
from plumbline.papers.studies import Names
from plumbline.runtime.job import job
from plumbline.store import read_table
from plumbline.tables.export import write_everywhere

with job(snakemake):
    names = Names(**snakemake.params.names)
    kinds = ("reproduction", "performance", "agreement", "sparsity")
    tables = {kind: read_table(path, kind).to_pandas() for kind in kinds if (path := getattr(snakemake.input, kind))}
    write_everywhere(snakemake.output, "quirks", quirk_rows(names=names, **tables))
