"""Gather a protocol's scores of all cells into its table."""

import pandas as pd

from plumbline.protocols.explained import scores_of
from plumbline.protocols.performance.chance import at_chance, marked
from plumbline.registry import load
from plumbline.runtime.job import job
from plumbline.store import read_table
from plumbline.tables.export import write_everywhere

with job(snakemake):
    protocol = load(snakemake.params.object)(**snakemake.params.options)
    frames = []
    for cell, path in zip(snakemake.params.cells, snakemake.input.scores, strict=True):
        summary = protocol.summarise(read_table(path, scores_of(protocol)))
        frames.append(summary.assign(**{key: cell[key] for key in ("dataset", "variant", "model")}))
    left_out = at_chance(read_table(snakemake.input.performance, "performance").to_pandas())
    table = pd.concat(frames, ignore_index=True)
    # A row that compares two models says nothing if one of them is at chance.
    for seed in ("seed", "base_seed"):
        table = marked(table, left_out, seed) if seed in table else table
    write_everywhere(snakemake.output, protocol.table, table)
