"""Assignment of GPUs to the jobs of one machine. Needs no torch, and must run before CUDA is initialised.

Snakemake counts GPUs but does not assign them. So a job locks one: a file per GPU and slot, locked by the kernel until
the process ends.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

# Variables that a scheduler sets in the jobs it starts.
SCHEDULERS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "FLUX_JOB_ID")
POLL_SECONDS = 0.2
_held: list[IO[str]] = []


class Gpu(NamedTuple):
    """`name` is the name in CUDA_VISIBLE_DEVICES, `identity` is the same for every process of the machine."""

    name: str
    identity: str


def installed_gpus() -> list[Gpu]:
    """The GPUs that `nvidia-smi` lists, by UUID."""
    tool = shutil.which("nvidia-smi")
    if not tool:
        return []
    command = [tool, "--query-gpu=uuid", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    names = [line.strip() for line in done.stdout.splitlines()] if done.returncode == 0 else []
    return [Gpu(name, name) for name in names if name]


def visible_gpus(environment: Mapping[str, str], present: Sequence[Gpu]) -> list[Gpu]:
    """The GPUs that this process may use, in its order."""
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return list(present)
    gpus = []
    for name in (part.strip() for part in chosen.split(",")):
        if name.isdigit():
            known = int(name) < len(present)
            gpus.append(Gpu(name, present[int(name)].identity if known else name))
        elif name.startswith(("GPU-", "MIG-")):
            gpus.append(Gpu(name, next((gpu.identity for gpu in present if gpu.identity.startswith(name)), name)))
        else:
            break  # As CUDA does: what follows an invalid name is not visible.
    return gpus


def crowding(jobs: int, gpus: int, slots: int) -> str:
    """What to tell a user whose run starts more jobs at a time than its GPUs take; empty if they take all."""
    if not gpus or jobs <= gpus * slots:
        return ""
    share = -(-jobs // gpus)
    return (
        f"{jobs} jobs that need a GPU may start at a time, but {gpus} GPU{'s' * (gpus > 1)} with `compute: "
        f"{{slots_per_gpu: {slots}}}` take{'s' * (gpus == 1)} {gpus * slots}, so that others wait. To let {share} jobs "
        f"share a GPU, set `compute: {{slots_per_gpu: {share}}}` in the config; it changes no result."
    )


def lock_slot(gpus: Sequence[Gpu], slots: int, folder: Path) -> tuple[Gpu, IO[str]] | None:
    """Lock a free slot on the GPU with the fewest locked slots; None if all are locked."""
    folder.mkdir(parents=True, exist_ok=True)
    for slot in range(slots):
        for gpu in gpus:
            file = (folder / f"{gpu.identity}.{slot}.lock").open("w", encoding="utf-8")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                continue
            return gpu, file
    return None


def claim(slots: int = 1, folder: Path | None = None) -> str | None:
    """Lock a GPU for this process until it ends and make it the only one that CUDA sees; None if there is none.

    Waits while all are locked. A single GPU that a scheduler has assigned is used without a lock.
    """
    gpus = visible_gpus(os.environ, installed_gpus())
    if not gpus:
        return None
    if len(gpus) == 1 and any(name in os.environ for name in SCHEDULERS):
        return gpus[0].name
    # The same folder for all of this user's jobs on the machine.
    folder = folder or Path(tempfile.gettempdir(), f"plumbline-gpus-{os.getuid()}")
    waiting = False
    while not (taken := lock_slot(gpus, slots, folder)):
        if not waiting:
            print(f"plumbline: waiting for one of {len(gpus) * slots} GPU slots.", file=sys.stderr, flush=True)
            waiting = True
        time.sleep(POLL_SECONDS)
    gpu, file = taken
    _held.append(file)
    os.environ["CUDA_VISIBLE_DEVICES"] = gpu.name
    return gpu.name
