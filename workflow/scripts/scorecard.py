"""Put every measure of the study against every protocol."""

from plumbline.protocols.agreement.twins import twins_of
from plumbline.protocols.performance.chance import at_chance
from plumbline.protocols.scorecard.table import Measures, scorecard_rows, values_of
from plumbline.runtime.job import job
from plumbline.store import read_table
from plumbline.tables.export import write_everywhere

with job(snakemake):
    params, files = snakemake.params, iter(snakemake.input.importances)
    tables = {kind: read_table(snakemake.input[kind], kind).to_pandas() for kind in params.tables}
    left_out = at_chance(read_table(snakemake.input.performance, "performance").to_pandas())
    twins, explained = {}, []
    for cell in params.cells:
        keys = cell["dataset"], cell["variant"], cell["model"]
        importances = {measure: next(files) for measure in cell["measures"]}
        explained += [(*keys, measure) for measure in importances]
        # The first block of seeds says which rank alike.
        if keys not in twins:
            twins[keys] = twins_of(importances)
    measures = Measures(params.kinds, params.random, twins)
    card = scorecard_rows(values_of(tables, measures), tables, explained, measures, left_out)
    write_everywhere(snakemake.output, "scorecard", card)
