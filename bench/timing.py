"""Two ways to do the same work, timed in turn in one run."""

import time
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """One line of the table: seconds of the plain way and of ours."""

    what: str
    plain: float
    ours: float


def compare(what: str, plain: Callable[[], object], ours: Callable[[], object], repeats: int = 3) -> Row:
    """Alternate the two and keep each one's fastest time, so that other work on the machine hits neither alone."""
    ours()
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for way, kept in zip((plain, ours), seconds, strict=True):
            start = time.perf_counter()
            way()
            kept.append(time.perf_counter() - start)
    return Row(what, min(seconds[0]), min(seconds[1]))
