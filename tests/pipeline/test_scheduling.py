"""The main process of a long run is idle while its jobs run."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from .conftest import copy_project

pytestmark = pytest.mark.pipeline

JOBS = 300
# A share of a core that is next to nothing, and how often it is measured until it is reached. Snakemake itself has 5
# threads, 12 with the executor of SLURM.
IDLE, PATIENCE, FEW_THREADS = 0.1, 15, 20
# The project's own Snakefile with trivial jobs, then one that waits while another is ready to run after it.
TRIVIAL = """
include: "Snakefile"

localrules: trivial, waits, last

rule trivial:
    output: touch("trivial/{number}")

rule waits:
    input: expand("trivial/{number}", number=range(JOBS))
    output: touch("waited/{number}")
    resources: slots=1
    shell: "touch began; until test -e go_on; do sleep 0.1; done"

rule last:
    input: expand("waited/{number}", number=range(2))
"""


def idle_main_process(folder: Path, *arguments: str) -> tuple[int, float]:
    """The threads of the main process after JOBS trivial jobs, while one job runs, and its share of a core.

    The scheduler first looks once at each finished job, which may take some seconds.
    """
    (folder / "trivial.smk").write_text(TRIVIAL.replace("JOBS", str(JOBS)))
    words = ["last", "--snakefile", "trivial.smk", "--cores", "2", "--resources", "slots=1", *arguments]
    run = subprocess.Popen(
        [sys.executable, "-m", "snakemake", *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        process = psutil.Process(run.pid)
        while not (folder / "began").exists():
            assert run.poll() is None, run.stdout.read().decode()
            process.cpu_percent(0.2)
        shares: list[float] = []
        while len(shares) < PATIENCE and (not shares or shares[-1] >= IDLE):
            shares.append(process.cpu_percent(2) / 100)
        return process.num_threads(), shares[-1]
    finally:
        (folder / "go_on").touch()
        output, _ = run.communicate()
        assert run.returncode == 0, output.decode()


def test_the_main_process_is_idle_after_hundreds_of_jobs(tmp_path):
    threads, share = idle_main_process(copy_project(tmp_path / "study"))
    # With Snakemake's own limit of jobs per second there is a timer's thread for each finished job (80, and a core).
    assert threads < FEW_THREADS
    assert share < IDLE
