"""Score a cell by one protocol."""

from pathlib import Path

from plumbline.job import job
from plumbline.protocols.explained import Explained
from plumbline.registry import load
from plumbline.store import write_table

with job(snakemake) as running:
    explained = Explained(
        predictions=Path(snakemake.input.predictions),
        importances=dict(zip(snakemake.params.measures, map(Path, snakemake.input.importances), strict=True)),
        seeds=snakemake.params.seeds,
        splits=snakemake.params.splits,
    )
    scores = load(snakemake.params.object)(**snakemake.params.options).score(explained)
    write_table(snakemake.output.scores, "scores", scores)
    running.manifest(rows=len(scores["seed"]))
