"""Gather what every heavy job cost."""

from plumbline.job import job
from plumbline.store import read_json
from plumbline.tables.export import write_everywhere
from plumbline.tables.timings import timings

with job(snakemake):
    write_everywhere(snakemake.output, "timings", timings(map(read_json, snakemake.input)))
