"""Tokenize a dataset's texts with the subword tokenizer of a pretrained model."""

from plumbline.data.schemas import INSTANCES
from plumbline.data.subwords import tokenize_subwords
from plumbline.runtime.job import job
from plumbline.store import read_table, write_json, write_table

with job(snakemake) as running:
    table = read_table(snakemake.input.instances, INSTANCES)
    columns, summary = tokenize_subwords(table, snakemake.params.checkpoint, snakemake.params.prompt)
    write_table(snakemake.output.instances, INSTANCES, columns)
    write_json(snakemake.output.summary, summary)
    running.manifest(rows=len(columns["split"]))
