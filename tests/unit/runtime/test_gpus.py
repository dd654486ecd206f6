"""Assignment of GPUs to several processes; needs no GPU."""

import json
import os
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from plumbline.runtime import gpus, run
from plumbline.runtime.gpus import Gpu, claim, crowding, lock_slot, visible_gpus
from plumbline.runtime.run import crowding_of

LIBRARY = Path(__file__).parents[3] / "workflow"
PRESENT = [Gpu("GPU-aaa", "GPU-aaa"), Gpu("GPU-bbb", "GPU-bbb")]
WORKER = """
    import json, os, sys, time
    from pathlib import Path
    from plumbline.runtime import gpus
    gpus.installed_gpus = lambda: [gpus.Gpu(f"GPU-{i}", f"GPU-{i}") for i in range(int(sys.argv[2]))]
    name = gpus.claim(int(sys.argv[3]), Path(sys.argv[1]))
    start = time.time()
    time.sleep(0.5)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == name
    print(json.dumps([name, start, time.time()]))
    if sys.argv[4] == "die":
        os.kill(os.getpid(), 9)
"""


def start(folder: Path, present: int, slots: int, end: str = "exit", **variables: str) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("CUDA_VISIBLE_DEVICES", *gpus.SCHEDULERS)}
    environment |= {"PYTHONPATH": str(LIBRARY), **variables}
    command = [sys.executable, "-c", textwrap.dedent(WORKER), str(folder), str(present), str(slots), end]
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize(("present", "slots"), [(1, 1), (2, 1), (1, 2)])
def test_no_gpu_has_more_jobs_at_once_than_slots(tmp_path, present, slots):
    workers = [start(tmp_path, present, slots) for _ in range(6)]
    outputs = [worker.communicate() for worker in workers]
    spans = [json.loads(out) for out, _ in outputs]
    for _, begun, _ in spans:
        at_once = Counter(name for name, first, last in spans if first <= begun < last)
        assert max(at_once.values()) <= slots
    assert {name for name, _, _ in spans} == {f"GPU-{i}" for i in range(present)}
    if present * slots == 1:
        assert any("waiting for one of 1 GPU slots" in err for _, err in outputs)


def test_a_killed_job_releases_its_gpu(tmp_path):
    assert start(tmp_path, 1, 1, "die").wait() == -9
    worker = start(tmp_path, 1, 1)
    out, err = worker.communicate(timeout=20)
    assert json.loads(out)[0] == "GPU-0" and "waiting" not in err


def test_the_gpu_with_the_fewest_jobs_comes_first(tmp_path):
    held = [lock_slot(PRESENT, 2, tmp_path) for _ in range(5)]
    assert [lock[0].name if lock else None for lock in held] == ["GPU-aaa", "GPU-bbb", "GPU-aaa", "GPU-bbb", None]


def test_a_gpu_that_the_scheduler_chose_is_used_without_a_lock(tmp_path):
    locked = lock_slot([Gpu("GPU-0", "GPU-0")], 1, tmp_path)
    assert locked
    worker = start(tmp_path, 1, 1, SLURM_JOB_ID="7", CUDA_VISIBLE_DEVICES="0")
    out, err = worker.communicate(timeout=20)
    assert json.loads(out)[0] == "0" and "waiting" not in err


def test_more_jobs_than_the_gpus_take_are_announced():
    assert crowding(5, 0, 1) == crowding(2, 2, 1) == crowding(4, 1, 4) == ""
    assert crowding(5, 1, 1) == (
        "5 jobs that need a GPU may start at a time, but 1 GPU with `compute: {slots_per_gpu: 1}` takes 1, so that "
        "others wait. To let 5 jobs share a GPU, set `compute: {slots_per_gpu: 5}` in the config; it changes no result."
    )
    assert "2 GPUs with `compute: {slots_per_gpu: 3}` take 6, so" in crowding(7, 2, 3)
    assert "set `compute: {slots_per_gpu: 4}`" in crowding(7, 2, 3)


def test_no_more_jobs_are_announced_than_cores_and_jobs_let_start(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(run, "installed_gpus", lambda: PRESENT)
    explains, reads = {"gpu": 1, "slots_per_gpu": 1}, {"mem_mb": 4}
    jobs = [SimpleNamespace(rule=SimpleNamespace(resources=needed)) for needed in (*[explains] * 4, reads)]
    assert crowding_of(jobs, {"gpu": 8, "_cores": 16}).startswith("4 jobs that need a GPU")
    assert crowding_of(jobs, {"gpu": 8, "_cores": SimpleNamespace(value=3)}).startswith("3 jobs that need a GPU")
    assert crowding_of(jobs, {"gpu": 8, "_cores": 2}) == crowding_of(jobs, {"_cores": 16}) == ""
    assert crowding_of(jobs[-1:], {"gpu": 8, "_cores": 16}) == ""


def test_only_visible_gpus_are_taken():
    assert visible_gpus({}, PRESENT) == PRESENT
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "1"}, PRESENT) == [Gpu("1", "GPU-bbb")]
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "GPU-b, 0"}, PRESENT) == [Gpu("GPU-b", "GPU-bbb"), Gpu("0", "GPU-aaa")]
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "MIG-x"}, PRESENT) == [Gpu("MIG-x", "MIG-x")]
    for none in ("", "-1", "NoDevFiles"):
        assert visible_gpus({"CUDA_VISIBLE_DEVICES": none}, PRESENT) == []
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "0,-1,1"}, PRESENT) == [Gpu("0", "GPU-aaa")]


def test_a_machine_without_gpus_claims_none(monkeypatch, tmp_path):
    monkeypatch.setattr(gpus, "installed_gpus", list)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    started = time.perf_counter()
    assert claim(1, tmp_path) is None and time.perf_counter() - started < 1
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
