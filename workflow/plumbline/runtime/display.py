"""The running jobs of a study on a terminal, a line for each, below whatever else is said."""

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any, TextIO

from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from plumbline.errors import PlumblineError
from plumbline.runtime.progress import PERIOD, State, clock, states

# Columns that a job's name is not cut below for the sake of what it does.
SHORTEST = 20
# A job that has said nothing for so long may be stuck.
SILENT = 60.0
# The display takes one of so many seconds at most.
SHARE = 20


def wanted(stream: TextIO) -> bool:
    """Whether someone may be watching: there is a terminal that can move its cursor, and it is no CI."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb" and not os.environ.get("CI")


def cut_to_width(text: str, width: int) -> str:
    """A text cut to some columns; signs that would move the cursor are left out."""
    told = Text("".join(filter(str.isprintable, text)))
    told.truncate(width, overflow="ellipsis")
    return told.plain


def line(state: State, now: float, width: int) -> str:
    """A state in one line of a terminal: the job, what it does, how far and how fast. What comes later is cut later."""
    batch = f"batch {state.batch}" + (f"/{state.batches}" if state.batches else "") if state.batch else ""
    work = ", ".join(filter(None, [state.doing, batch]))
    numbers = "  ".join(_numbers(state, now))
    room = max(1, width - cell_len(numbers) - 2)
    job = cut_to_width(state.job, max(SHORTEST, room - cell_len(work) - 2)) if work else state.job
    told = ": ".join(filter(None, [job, work]))
    if state.note and cell_len(told) + 2 + cell_len(state.note) <= room:
        told += f", {state.note}"
    return cut_to_width(f"{cut_to_width(told, room)}  {numbers}", width)


def _numbers(state: State, now: float) -> list[str]:
    told = []
    if state.total:
        told.append(f"{min(state.done / state.total, 1):.0%}")
    elif state.done:
        told.append(f"{state.done:,} {state.unit}s")
    if state.rate:
        told.append(speed(state.rate, state.unit))
    remaining = state.seconds_left(now)
    told.append(f"{clock(now - state.started)} so far" if remaining is None else f"{clock(remaining)} left")
    if now - state.told > SILENT:
        told.append(f"silent for {clock(now - state.told)}")
    return told


def speed(rate: float, unit: str) -> str:
    """Units per second; bytes are those of a download."""
    if unit == "byte":
        return f"{rate / 1e6:.1f} MB/s"
    return f"{rate:,.0f} {unit}s/s" if rate >= 10 else f"{rate:.2g} {unit}s/s"


def block(told: Iterable[State], silent: Iterable[str], now: float, width: int, height: int) -> list[str]:
    """The lines of jobs, the oldest first and then those that say nothing themselves, as far as there is room."""
    lines = [line(state, now, width) for state in sorted(told, key=lambda state: (state.started, state.job))]
    lines += [cut_to_width(job, width) for job in sorted(silent)]
    room = max(1, height // 2)
    return (
        lines
        if len(lines) <= room
        else [*lines[: room - 1], cut_to_width(f"… and {len(lines) - room + 1} more jobs", width)]
    )


class _Console(Console):
    """A console that is printed on by one thread at a time, from the place of the live lines to their drawing.

    Else what another thread prints in between would leave one of them behind.
    """

    guard: AbstractContextManager[Any] = nullcontext()

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, with what is live below it."""
        with self.guard:
            super().print(*objects, **options)


class Display:
    """Lines of a run. On a terminal that is watched its running jobs stand below them, from `start` to `stop`.

    `running` gives the names of the jobs by their keys. What jobs write themselves goes to a file, as told by
    `redirection`, and from there to the terminal: else it would run into the live lines.
    """

    def __init__(self, stream: TextIO, results: Path, running: Callable[[], Mapping[str, str]]) -> None:
        self._results, self._running = results, running
        self._heard: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._refresh, daemon=True)
        # Snakemake's messages may hold brackets that are no markup, and lines that only a terminal should break.
        self._console = _Console(file=stream, markup=False, highlight=False, emoji=False, soft_wrap=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._console.guard = self._live._lock
        self.live = wanted(stream)

    def print(self, text: str, failure: bool = False) -> None:
        """Print a line, above the live ones if there are any."""
        self._console.out(text, style="red" if failure and self.live else None)

    def start(self) -> None:
        """Show the running jobs from now on."""
        self._said = tempfile.NamedTemporaryFile(prefix="plumbline-", suffix=".log")  # noqa: SIM115
        self.redirection = f"exec >> '{self._said.name}' 2>&1; "
        self._live.start()
        self._console.show_cursor()  # A run that is killed could not show it again.
        self._thread.start()

    def stop(self) -> None:
        """Leave no live line, and all that was said."""
        if self._thread.is_alive():
            self._over.set()
            self._thread.join(timeout=10)
            self._live.stop()
            self._said.close()

    def _refresh(self) -> None:
        over, pause = False, 0.0
        while not over:
            over, begun = self._over.wait(pause), time.monotonic()
            with suppress(Exception):  # A display must not break a run.
                for one in self._said.readlines():
                    # Of a bar that was written again and again its last state is left.
                    self.print(one.decode(errors="replace").rstrip().rpartition("\r")[2])
                lines = [] if over else self._lines()
                self._live.update(Group(*map(Text, lines)), refresh=True)
            # Where there are many jobs, or the disk is slow, more seldom.
            pause = max(PERIOD, SHARE * (time.monotonic() - begun))

    def _lines(self) -> list[str]:
        if not _foreground(self._console.file):
            return []
        found, running = states(self._results), self._running()
        self._heard = {*found, *self._heard} & running.keys()
        silent = [
            f"{job}  {'ending' if key in self._heard else 'starting'}"
            for key, job in running.items()
            if key not in found
        ]
        told = [state for key, state in found.items() if key in running]
        return block(told, silent, time.time(), *self._console.size)


def _foreground(stream: IO[str]) -> bool:
    """Whether the terminal is this run's and not, say, a shell's that has sent it to the background."""
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except OSError:
        return True


def watch(results: Path, stream: TextIO | None = None, sleep: Callable[[float], None] = time.sleep) -> None:
    """Show the running jobs until interrupted; where there is no terminal, once."""
    if not results.is_dir():
        raise PlumblineError(f"There is no folder '{results}': name the results of a study.")
    none = ["No job is running."]
    if not wanted(stream or sys.stdout):
        print("\n".join(block(states(results).values(), [], time.time(), 200, sys.maxsize) or none))
        return
    console = Console(file=stream)
    with suppress(KeyboardInterrupt), Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            lines = block(states(results).values(), [], time.time(), *console.size) or none
            live.update(Group(*map(Text, lines)), refresh=True)
            sleep(PERIOD)
