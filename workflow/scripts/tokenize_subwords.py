"""Tokenize a dataset's texts with the subword tokenizer of a pretrained model."""

from plumbline.data.schemas import INSTANCES
from plumbline.data.subwords import tokenize_subwords
from plumbline.runtime.job import job
from plumbline.store import read_table, write_json, write_table

with job(snakemake) as running:
    columns, summary = tokenize_subwords(read_table(snakemake.input.instances, INSTANCES), snakemake.params.checkpoint)
    write_table(snakemake.output.instances, INSTANCES, columns)
    write_json(snakemake.output.summary, summary)
    running.manifest(rows=len(columns["split"]))
