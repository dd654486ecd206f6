"""Jobs that a killed run left behind. They would write the same files as the next run, which stops them."""

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
# The variable in which the processes of a run hold the identity of its main process.
MAIN = "PLUMBLINE_MAIN"


def identity(process: psutil.Process) -> str:
    """A unique identity of a process: its PID namespace (as of a container), PID and start time."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return f"{namespace} {process.pid} {process.create_time():.2f}"


def mark_processes() -> None:
    """Mark all processes that this one starts from now on with its identity."""
    os.environ[MAIN] = identity(psutil.Process())


def _has_ended(main: str) -> bool:
    """Whether a main process is known to have ended; those in other PID namespaces are unknown."""
    namespace, pid, _ = main.rsplit(" ", 2)
    if namespace != identity(psutil.Process()).rsplit(" ", 2)[0]:
        return False
    try:
        return identity(psutil.Process(int(pid))) != main
    except psutil.NoSuchProcess:
        return True


def slurm_comment(rule: str, wildcards: Collection[str]) -> str:
    """The comment of a job that Snakemake submits to SLURM."""
    keys = "_".join(wildcards).replace("/", "_")
    return f"rule_{rule}_wildcards_{keys}" if keys else f"rule_{rule}"


def queued_jobs(folder: Path, comments: Collection[str]) -> list[str]:
    """This user's SLURM jobs of a working folder that have one of these comments."""
    if not shutil.which("squeue"):
        return []
    command = ["squeue", "--me", "--noheader", "--format=%i|%Z|%k"]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    jobs = [line.split("|", 2) for line in output.splitlines() if line.count("|") >= 2]
    return [job for job, directory, comment in jobs if Path(directory) == folder and comment in comments]


def orphaned_processes(folder: Path) -> list[psutil.Process]:
    """This machine's processes that run a Snakemake script in a working folder and whose main process has ended.

    Processes without a mark are not ours. It does not matter how Snakemake was started.
    """
    orphans = []
    for process in psutil.process_iter(["cmdline"]):
        arguments = process.info["cmdline"] or []
        if any(argument.startswith(f"{folder}/.snakemake/scripts/") for argument in arguments):
            try:
                main = process.environ().get(MAIN, "")
            except psutil.Error:  # It has ended, or is another user's.
                continue
            if main and _has_ended(main):
                orphans.append(process)
    return orphans


def stop_leftovers(folder: Path, comments: Collection[str], patience: float = PATIENCE) -> str:
    """Stop the jobs of an earlier run, wait until they have ended, and return a message; empty if there are none."""
    jobs, processes = queued_jobs(folder, comments), orphaned_processes(folder)
    if not jobs and not processes:
        return ""
    if jobs:
        subprocess.run(["scancel", *jobs], check=False)
    for process in processes:
        # It may have ended with its SLURM job.
        with suppress(psutil.NoSuchProcess):
            process.kill()
    left = [*(f"SLURM job {job}" for job in jobs), *(f"process {process.pid}" for process in processes)]
    end = time.monotonic() + patience
    while queued_jobs(folder, comments) or orphaned_processes(folder):
        if time.monotonic() > end:
            raise PlumblineError(
                f"{_listed(left)} of an earlier run would write the same files and could not be stopped within "
                f"{patience:.0f} seconds; stop them and run again."
            )
        time.sleep(POLL_SECONDS)
    return f"stopped {_listed(left)}, left behind by a run that was killed: it would have written the same files."


def _listed(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
