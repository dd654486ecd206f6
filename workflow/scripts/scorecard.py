"""Put every measure of the study against every protocol."""

from plumbline.job import job
from plumbline.store import read_table
from plumbline.tables.export import write_everywhere
from plumbline.tables.scorecard import scorecard_rows, values_of

with job(snakemake):
    params = snakemake.params
    tables = {kind: read_table(snakemake.input[kind], kind).to_pandas() for kind in params.tables}
    values = values_of(tables, params.random, params.kinds)
    card = scorecard_rows(values, tables, map(tuple, params.explained), params.kinds)
    write_everywhere(snakemake.output, "scorecard", card)
