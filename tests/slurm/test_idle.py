"""The main process of a long run is idle while its jobs run, under the profile for SLURM too."""

import pytest

from ..pipeline.conftest import copy_project
from ..pipeline.test_scheduling import FEW_THREADS, IDLE, idle_main_process

pytestmark = pytest.mark.slurm


def test_the_main_process_is_idle_after_hundreds_of_jobs(cluster, tmp_path):
    profile = ["--workflow-profile", "profiles/slurm"]
    threads, share = idle_main_process(copy_project(tmp_path / "study"), *profile)
    assert threads < FEW_THREADS
    assert share < IDLE
