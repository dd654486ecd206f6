"""Handing out GPUs to the jobs of one machine. Needs no torch, and must run before CUDA starts.

Snakemake counts GPUs but does not say which one a job has. So a job takes a lock on one: a file per GPU and slot,
locked by the kernel for as long as the process lives, however it ends.
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
    """`name` is what CUDA_VISIBLE_DEVICES calls it, `identity` is the same for every process of the machine."""

    name: str
    identity: str


def installed() -> list[Gpu]:
    """The GPUs that the driver's own tool lists, by their unchanging names."""
    tool = shutil.which("nvidia-smi")
    if not tool:
        return []
    told = subprocess.run(
        [tool, "--query-gpu=uuid", "--format=csv,noheader"], capture_output=True, text=True, check=False
    )
    names = [line.strip() for line in told.stdout.splitlines()] if told.returncode == 0 else []
    return [Gpu(name, name) for name in names if name]


def visible(environment: Mapping[str, str], present: Sequence[Gpu]) -> list[Gpu]:
    """The GPUs that this process may use, in its order."""
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return list(present)
    found = []
    for name in (part.strip() for part in chosen.split(",")):
        if name.isdigit():
            known = int(name) < len(present)
            found.append(Gpu(name, present[int(name)].identity if known else name))
        elif name.startswith(("GPU-", "MIG-")):
            found.append(Gpu(name, next((gpu.identity for gpu in present if gpu.identity.startswith(name)), name)))
        else:
            break  # As CUDA does: what follows an invalid name is not visible.
    return found


def lock_folder() -> Path:
    """Where this user's locks lie, the same for all jobs of the machine."""
    return Path(tempfile.gettempdir(), f"plumbline-gpus-{os.getuid()}")


def take(gpus: Sequence[Gpu], slots: int, folder: Path) -> tuple[Gpu, IO[str]] | None:
    """Lock a free slot, one of the emptiest GPU there is; None if all are taken."""
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
    """Take a GPU for this process until it ends and make it the only one that CUDA sees; None where there is none.

    Waits while all are taken. If a scheduler has given the job a single GPU, that one is used without asking further.
    """
    gpus = visible(os.environ, installed())
    if not gpus:
        return None
    if len(gpus) == 1 and any(name in os.environ for name in SCHEDULERS):
        return gpus[0].name
    told = False
    while not (taken := take(gpus, slots, folder or lock_folder())):
        if not told:
            print(f"plumbline: waiting for one of {len(gpus) * slots} GPU slots.", file=sys.stderr, flush=True)
            told = True
        time.sleep(POLL_SECONDS)
    gpu, file = taken
    _held.append(file)
    os.environ["CUDA_VISIBLE_DEVICES"] = gpu.name
    return gpu.name
