"""Gather what models said of the truth while they learned into one table."""

import pandas as pd

from plumbline.runtime.job import job
from plumbline.store import read_table
from plumbline.tables.export import write_everywhere

with job(snakemake):
    frames = []
    for cell, path in zip(snakemake.params.cells, snakemake.input.traces, strict=True):
        frame = read_table(path, "trace_scores").to_pandas()
        frames.append(frame.assign(**{key: cell[key] for key in ("dataset", "variant", "model")}))
    write_everywhere(snakemake.output, "trace", pd.concat(frames, ignore_index=True))
