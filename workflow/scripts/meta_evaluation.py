"""Put the protocols against each other: how alike they rank measures."""

from plumbline.protocols.scorecard.table import meta_rows
from plumbline.runtime.job import job
from plumbline.store import read_table
from plumbline.tables.export import write_everywhere

with job(snakemake):
    card = read_table(snakemake.input.scorecard, "scorecard").to_pandas()
    write_everywhere(snakemake.output, "meta_evaluation", meta_rows(card, snakemake.params.random))
