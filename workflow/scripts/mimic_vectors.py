"""Train word vectors on all discharge summaries of MIMIC-III."""

from pathlib import Path

from plumbline.data.note_vectors import write_note_vectors
from plumbline.runtime.job import job

with job(snakemake):
    write_note_vectors(Path(snakemake.input.notes), Path(snakemake.output.vectors))
