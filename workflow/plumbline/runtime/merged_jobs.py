"""The jobs of a study with their params, which `plumbline merge` compares with the manifests of finished runs.

`snakemake --touch` writes them when it starts; a dry run would not evaluate any params.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

# The variable that names the file for the jobs. While it is set, raw files may be missing: nothing is prepared.
MERGE = "PLUMBLINE_MERGE"


def write_jobs(path: Path, jobs: Iterable[Any]) -> None:
    """Write rule, keys, inputs and outputs of Snakemake's jobs and, of those with a manifest, the params."""
    from plumbline.runtime.job import plain_values
    from plumbline.store import write_json

    records = []
    for job in jobs:
        manifest = str(dict(job.output.items()).get("manifest", ""))
        records.append(
            {
                "rule": job.rule.name,
                "wildcards": plain_values(job.wildcards_dict),
                "inputs": list(map(str, job.input)),
                "outputs": list(map(str, job.output)),
                "manifest": manifest,
                "params": plain_values(job.params) if manifest else {},
            }
        )
    write_json(path, records)
