"""Gather what the adversaries reached, by each split that chooses their epoch."""

import pandas as pd

from plumbline.job import job
from plumbline.store import read_table
from plumbline.tables.adversary import adversary_rows
from plumbline.tables.export import write_everywhere

with job(snakemake):
    cells = zip(snakemake.params.cells, snakemake.input.histories, strict=True)
    rows = [row for cell, path in cells for row in adversary_rows(read_table(path, "history").to_pandas(), cell)]
    write_everywhere(snakemake.output, "adversary", pd.DataFrame(rows))
