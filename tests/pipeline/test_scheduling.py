"""The main process of a long run is idle while its jobs run."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from .conftest import copy_project

pytestmark = pytest.mark.pipeline

JOBS = 300
# The project's own Snakefile with trivial jobs, and one that is looked at after all of them.
TRIVIAL = """
include: "Snakefile"

localrules: trivial, last

rule trivial:
    output: touch("trivial/{number}")

rule last:
    input: expand("trivial/{number}", number=range(JOBS))
    output: touch("last")
    shell: "touch began; until test -e go_on; do sleep 0.1; done"
"""


def idle_main_process(folder: Path, *arguments: str) -> tuple[int, float]:
    """The threads of the main process after JOBS trivial jobs, while one job runs, and its share of a core."""
    (folder / "trivial.smk").write_text(TRIVIAL.replace("JOBS", str(JOBS)))
    words = ["last", "--snakefile", "trivial.smk", "--cores", "2", *arguments]
    run = subprocess.Popen(
        [sys.executable, "-m", "snakemake", *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        process = psutil.Process(run.pid)
        while not (folder / "began").exists():
            assert run.poll() is None, run.stdout.read().decode()
            process.cpu_percent(0.2)
        share = process.cpu_percent(3) / 100
        return process.num_threads(), share
    finally:
        (folder / "go_on").touch()
        said, _ = run.communicate()
        assert run.returncode == 0, said.decode()


def test_the_main_process_is_idle_after_hundreds_of_jobs(tmp_path):
    threads, share = idle_main_process(copy_project(tmp_path / "study"))
    # With Snakemake's own limit of jobs per second there is a timer's thread for each finished job.
    assert threads < 10
    assert share < 0.1
