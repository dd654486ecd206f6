"""Gather what every heavy job cost."""

from plumbline.protocols.timings.table import timings
from plumbline.runtime.job import job
from plumbline.store import read_json
from plumbline.tables.export import write_everywhere

with job(snakemake):
    write_everywhere(snakemake.output, "timings", timings(map(read_json, snakemake.input)))
