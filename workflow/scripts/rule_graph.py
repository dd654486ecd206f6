"""Draw the workflow's rule graph."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from plumbline.errors import PlumblineError
from plumbline.figures.rule_graph import rule_graph
from plumbline.figures.style import save
from plumbline.runtime.job import job, plain
from plumbline.store import write_json

with job(snakemake), TemporaryDirectory() as folder:
    # The whole config as it stands, with what the command line changed in it.
    config = Path(folder, "config.json")
    write_json(config, plain(snakemake.config))
    snakefile = Path(snakemake.scriptdir).parents[1] / "Snakefile"
    # Without the lock and the check for unfinished files: the workflow that runs this job holds both.
    command = [sys.executable, "-m", "snakemake", "all", "--snakefile", str(snakefile)]
    command += ["--rulegraph", "dot", "--forceall", "--nolock", "--ignore-incomplete", "--configfile", str(config)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if told.returncode:
        raise PlumblineError(f"Snakemake could not print the rule graph: {told.stderr.strip()}")
    save(rule_graph(told.stdout), snakemake.output)
