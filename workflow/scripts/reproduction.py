"""Put the study's results beside the published ones."""

from plumbline.job import job
from plumbline.store import read_json, read_table
from plumbline.tables.export import write_everywhere
from plumbline.tables.reproduction import Names, reproduction

with job(snakemake):
    agreement = snakemake.input.agreement
    table = reproduction(
        [read_json(path) for path in snakemake.input.datasets],
        read_table(snakemake.input.performance, "performance").to_pandas(),
        read_table(agreement, "agreement").to_pandas() if agreement else None,
        Names(snakemake.params.datasets, snakemake.params.models, snakemake.params.measures),
        snakemake.params.select_on,
    )
    write_everywhere(snakemake.output, "reproduction", table)
