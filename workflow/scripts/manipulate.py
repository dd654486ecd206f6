"""Make a dataset variant with known ground truth: reassign labels, and change texts or images accordingly."""

from plumbline.data.manipulation import manipulate
from plumbline.data.schemas import INSTANCES, VOCABULARY
from plumbline.registry import load
from plumbline.runtime.job import job
from plumbline.store import read_record, read_table, write_json, write_table

with job(snakemake) as running:
    columns, summary = manipulate(
        read_table(snakemake.input.instances, INSTANCES),
        read_table(snakemake.input.vocabulary, VOCABULARY)["word"].to_pylist(),
        read_record(snakemake.input.summary),
        load(snakemake.params.object),
        snakemake.params.facts,
        snakemake.params.manipulation,
    )
    write_table(snakemake.output.instances, INSTANCES, columns)
    write_json(snakemake.output.summary, summary)
    running.manifest(rows=len(columns["split"]))
