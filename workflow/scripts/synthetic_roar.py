"""Check the removal of features where it is known which ones tell the class."""

import pandas as pd

from plumbline.protocols.roar.synthetic import synthetic_check
from plumbline.runtime.job import job
from plumbline.tables.export import write_everywhere

with job(snakemake) as running:
    params = snakemake.params
    checks = [pd.DataFrame(synthetic_check(seed, params.train, params.test)) for seed in params.seeds]
    write_everywhere(snakemake.output, "synthetic_roar", pd.concat(checks, ignore_index=True))
    running.manifest(rows=len(params.seeds))
