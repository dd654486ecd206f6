"""A SLURM cluster for all tests here, and the study that they run, undisturbed."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from ..pipeline.conftest import run_snakemake
from .cluster import start, stop, why_not
from .studies import STARTED, accounted, new_study


@pytest.fixture(scope="session")
def cluster(tmp_path_factory, request) -> Path:
    """The folder of a cluster that is up."""
    if reason := why_not():
        pytest.skip(f"no SLURM cluster for tests: {reason}")
    if not find_spec("snakemake_executor_plugin_slurm"):
        pytest.skip("no SLURM cluster for tests: pip install 'snakemake-executor-plugin-slurm>=2.8'")
    folder = tmp_path_factory.mktemp("cluster")
    shown = request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled
    seconds = start(folder)
    with shown():
        print(f"\nThe SLURM cluster came up in {seconds:.1f} s.")
    yield folder
    for process in STARTED:
        process.kill()
    try:
        with shown():
            print(f"\n{accounted()}")
    finally:
        stop(folder)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory) -> Path:
    """The study after a whole run without SLURM."""
    folder = new_study(tmp_path_factory.mktemp("undisturbed") / "study")
    done = run_snakemake(folder, "all", "--cores", "2")
    assert done.returncode == 0, done.stdout
    return folder
