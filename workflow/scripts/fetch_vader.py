"""Fetch the film-review sentences and the sentiment lexicon of the vaderSentiment package."""

from pathlib import Path

from plumbline.data.fetch import fetch_vader
from plumbline.runtime.job import job

with job(snakemake):
    fetch_vader(Path(snakemake.output[0]).parent)
