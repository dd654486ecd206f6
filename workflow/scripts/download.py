"""Download a published archive into the raw folder."""

from pathlib import Path

from plumbline.data.download import download
from plumbline.data.publishers import ARCHIVES
from plumbline.runtime.job import job

with job(snakemake):
    download(ARCHIVES[snakemake.params.archive], Path(snakemake.params.raw))
