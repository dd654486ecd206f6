"""Put the protocols against each other: how alike they rank measures."""

from plumbline.job import job
from plumbline.store import read_table
from plumbline.tables.export import write_everywhere
from plumbline.tables.scorecard import meta_rows

with job(snakemake):
    card = read_table(snakemake.input.scorecard, "scorecard").to_pandas()
    write_everywhere(snakemake.output, "meta_evaluation", meta_rows(card, snakemake.params.random))
