"""Measure by the curves how faithful each measure is."""

from plumbline.protocols.performance.chance import at_chance
from plumbline.protocols.roar.table import faithfulness_rows
from plumbline.runtime.job import job
from plumbline.store import read_table
from plumbline.tables.export import write_everywhere

with job(snakemake):
    roar = read_table(snakemake.input.table, "roar").to_pandas()
    left_out = at_chance(read_table(snakemake.input.performance, "performance").to_pandas())
    rows = faithfulness_rows(roar, snakemake.params.headlines, snakemake.params.random, left_out)
    write_everywhere(snakemake.output, "faithfulness", rows)
