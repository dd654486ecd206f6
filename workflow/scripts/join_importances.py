"""Join the importances of a cell's instances that were split over several jobs."""

from plumbline.attribution.files import join_importances
from plumbline.runtime.job import job

with job(snakemake):
    params = snakemake.params
    join_importances(snakemake.input.parts, snakemake.output.importances, params.measures, params.seeds)
