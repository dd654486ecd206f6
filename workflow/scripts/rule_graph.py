"""Draw the workflow's rule graph."""

import subprocess
import sys

from plumbline.errors import PlumblineError
from plumbline.figures.rule_graph import rule_graph
from plumbline.figures.style import save
from plumbline.job import job

with job(snakemake):
    # Without the lock and the check for unfinished files: the workflow that runs this job holds both.
    command = [sys.executable, "-m", "snakemake", "all", "--snakefile", snakemake.input.snakefile]
    command += ["--rulegraph", "dot", "--forceall", "--nolock", "--ignore-incomplete"]
    if snakemake.params.configfiles:
        command += ["--configfile", *snakemake.params.configfiles]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if told.returncode:
        raise PlumblineError(f"Snakemake could not print the rule graph: {told.stderr.strip()}")
    save(rule_graph(told.stdout), snakemake.output)
