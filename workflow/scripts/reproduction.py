"""Put the study's results beside the published ones."""

from plumbline.papers.reproduction import reproduction
from plumbline.papers.studies import Names, Ran
from plumbline.protocols.timings.table import timings
from plumbline.runtime.job import job
from plumbline.store import read_json, read_record, read_table
from plumbline.tables.export import write_everywhere

with job(snakemake):
    params, paths = snakemake.params, snakemake.input
    # Of the tables but the first the study may have none.
    kinds = ("performance", "agreement", "adversary", "faithfulness", "ground_truth")
    tables = {name: getattr(paths, name) for name in kinds}
    ran = Ran(
        Names(**params.names),
        [read_record(path) for path in paths.datasets],
        params.select_on,
        training=timings(map(read_json, paths.training)),
        **{name: read_table(path, name).to_pandas() for name, path in tables.items() if path},
    )
    write_everywhere(snakemake.output, "reproduction", reproduction(ran))
