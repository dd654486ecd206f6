"""Draw the synthetic check of masking and training anew."""

from plumbline.figures.style import save
from plumbline.protocols.roar.figures import synthetic_figure
from plumbline.runtime.job import job
from plumbline.store import read_table

with job(snakemake):
    save(synthetic_figure(read_table(snakemake.input.table, "synthetic_roar").to_pandas()), snakemake.output)
