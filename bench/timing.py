"""Timing of two versions of the same work, in turn in one run."""

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch


class Row(NamedTuple):
    """A row of the table: seconds of the plain version and of ours."""

    what: str
    plain: float
    ours: float
    note: str = ""


def seconds(work: Callable[[], object]) -> float:
    """Seconds of one call, including work on the GPU."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def compare(what: str, plain: Callable[[], object], ours: Callable[[], object], turns: int, rows: int = 0) -> Row:
    """Alternate the two and keep the fastest time of each, so that other work on the machine affects both.

    With `rows` the note gives the rows per second of each.
    """
    ours()
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for version, times in zip((plain, ours), taken, strict=True):
            times.append(seconds(version))
    slow, fast = map(min, taken)
    return Row(what, slow, fast, f"{rows / slow:,.0f} → {rows / fast:,.0f} rows/s" if rows else "")


def jobs(script: str, seeds: list[int], *arguments: object) -> tuple[float, float]:
    """Seconds of one job per seed, of which one is timed, and of one job for all, including process start-up."""

    def job(seeds: list[int]) -> None:
        command = [sys.executable, script, *map(str, (*arguments, *seeds))]
        subprocess.run(command, check=True, capture_output=True)

    taken = {count: seconds(partial(job, seeds[:count])) for count in {1, len(seeds)}}
    return len(seeds) * taken[1], taken[len(seeds)]
