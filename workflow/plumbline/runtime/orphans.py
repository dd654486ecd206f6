"""Jobs that a run left behind when it was killed. They would write the same files as the next run, which stops them."""

import os
import shutil
import subprocess
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import psutil

from plumbline.errors import PlumblineError

PATIENCE, POLL_SECONDS = 120, 0.5
# The variable by which the processes of a run name the run's main process.
MAIN = "PLUMBLINE_MAIN"


def identity(process: psutil.Process) -> str:
    """A process as no other one is: its number, when it began, and in which space of numbers, as of a container."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{space} {process.pid} {process.create_time():.2f}"


def mark_processes() -> None:
    """Let all processes that this one starts from now on name it as the main process of their run."""
    os.environ[MAIN] = identity(psutil.Process())


def _is_gone(main: str) -> bool:
    """Whether a main process is known to have ended; nothing is known of those in other spaces of numbers."""
    space, number, _ = main.rsplit(" ", 2)
    if space != identity(psutil.Process()).rsplit(" ", 2)[0]:
        return False
    try:
        return identity(psutil.Process(int(number))) != main
    except psutil.NoSuchProcess:
        return True


def comment(rule: str, wildcards: Collection[str]) -> str:
    """What a job that Snakemake submits to SLURM is labelled with."""
    keys = "_".join(wildcards).replace("/", "_")
    return f"rule_{rule}_wildcards_{keys}" if keys else f"rule_{rule}"


def queued(folder: Path, comments: Collection[str]) -> list[str]:
    """This user's SLURM jobs of a working folder that do what jobs with these labels are to do."""
    if not shutil.which("squeue"):
        return []
    asked = ["squeue", "--me", "--noheader", "--format=%i|%Z|%k"]
    told = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    jobs = [line.split("|", 2) for line in told.splitlines() if line.count("|") >= 2]
    return [job for job, place, label in jobs if Path(place) == folder and label in comments]


def running(folder: Path) -> list[psutil.Process]:
    """This machine's processes that run a script of Snakemake's in a working folder and whose main process is gone.

    Those that name none are no processes of ours. Whether Snakemake was started by its command, under another name or
    from Python makes no difference.
    """
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any(word.startswith(f"{folder}/.snakemake/scripts/") for word in words):
            try:
                main = process.environ().get(MAIN, "")
            except psutil.Error:  # It ended while it was looked at, or is another user's.
                continue
            if main and _is_gone(main):
                found.append(process)
    return found


def stop_leftovers(folder: Path, comments: Collection[str], patience: float = PATIENCE) -> str:
    """Stop what an earlier run left behind, wait until it is gone, and say what it was; nothing if there is nothing."""
    jobs, processes = queued(folder, comments), running(folder)
    if not jobs and not processes:
        return ""
    if jobs:
        subprocess.run(["scancel", *jobs], check=False)
    for process in processes:
        # It may have ended with its job in SLURM's queue.
        with suppress(psutil.NoSuchProcess):
            process.kill()
    left = [*(f"SLURM job {job}" for job in jobs), *(f"process {process.pid}" for process in processes)]
    end = time.monotonic() + patience
    while queued(folder, comments) or running(folder):
        if time.monotonic() > end:
            raise PlumblineError(
                f"{_listed(left)} of an earlier run would write the same files and could not be stopped within "
                f"{patience:.0f} seconds; stop it and run again."
            )
        time.sleep(POLL_SECONDS)
    return f"stopped {_listed(left)}, left behind by a run that was killed: it would have written the same files."


def _listed(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
