"""Gather what the adversaries reached, by each split that chooses their epoch."""

import pandas as pd

from plumbline.protocols.adversary.table import adversary_rows
from plumbline.protocols.performance.chance import at_chance, marked
from plumbline.runtime.job import job
from plumbline.store import read_table
from plumbline.tables.export import write_everywhere

with job(snakemake):
    cells = zip(snakemake.params.cells, snakemake.input.histories, strict=True)
    rows = [row for cell, path in cells for row in adversary_rows(read_table(path, "history").to_pandas(), cell)]
    left_out = at_chance(read_table(snakemake.input.performance, "performance").to_pandas())
    write_everywhere(snakemake.output, "adversary", marked(pd.DataFrame(rows), left_out, seed="base_seed"))
