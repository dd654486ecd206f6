"""A live display of the running jobs on a terminal, one line each, below all other output."""

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

# Columns to which a job's name may be cut to make room for its current work.
SHORTEST = 20
# Seconds without a report after which a job may be stuck.
SILENT = 60.0
# The display takes at most one of this many seconds.
SHARE = 20


def supports_display(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can move its cursor, outside CI."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb" and not os.environ.get("CI")


def cut_to_width(text: str, width: int) -> str:
    """A text truncated to a width in columns, without control characters."""
    printable = Text("".join(filter(str.isprintable, text)))
    printable.truncate(width, overflow="ellipsis")
    return printable.plain


def state_line(state: State, now: float, width: int) -> str:
    """The line of a job: its name, current work, progress and speed. The name is cut first, the numbers last."""
    batch = f"batch {state.batch}" + (f"/{state.batches}" if state.batches else "") if state.batch else ""
    work = ", ".join(filter(None, [state.doing, batch]))
    numbers = "  ".join(_numbers(state, now))
    room = max(1, width - cell_len(numbers) - 2)
    job = cut_to_width(state.job, max(SHORTEST, room - cell_len(work) - 2)) if work else state.job
    text = ": ".join(filter(None, [job, work]))
    if state.note and cell_len(text) + 2 + cell_len(state.note) <= room:
        text += f", {state.note}"
    return cut_to_width(f"{cut_to_width(text, room)}  {numbers}", width)


def _numbers(state: State, now: float) -> list[str]:
    numbers = []
    if state.total:
        numbers.append(f"{min(state.done / state.total, 1):.0%}")
    elif state.done:
        numbers.append(f"{state.done:,} {state.unit}s")
    if state.rate:
        numbers.append(speed(state.rate, state.unit))
    remaining = state.seconds_left(now)
    numbers.append(f"{clock(now - state.started)} so far" if remaining is None else f"{clock(remaining)} left")
    if now - state.updated > SILENT:
        numbers.append(f"silent for {clock(now - state.updated)}")
    return numbers


def speed(rate: float, unit: str) -> str:
    """Units per second; bytes, of downloads, in MB."""
    if unit == "byte":
        return f"{rate / 1e6:.1f} MB/s"
    return f"{rate:,.0f} {unit}s/s" if rate >= 10 else f"{rate:.2g} {unit}s/s"


def job_lines(reported: Iterable[State], silent: Iterable[str], now: float, width: int, height: int) -> list[str]:
    """The lines of jobs, the oldest first, then those without a report; at most half of the screen."""
    lines = [state_line(state, now, width) for state in sorted(reported, key=lambda state: (state.started, state.job))]
    lines += [cut_to_width(job, width) for job in sorted(silent)]
    room = max(1, height // 2)
    if len(lines) > room:
        lines[room - 1 :] = [cut_to_width(f"… and {len(lines) - room + 1} more jobs", width)]
    return lines


class _Console(Console):
    """A console that holds the live display's lock while it prints, or output of another thread would leave a live
    line behind."""

    guard: AbstractContextManager[Any] = nullcontext()

    def print(self, *objects: Any, **options: Any) -> None:
        """Print above the live lines."""
        with self.guard:
            super().print(*objects, **options)


class Display:
    """The output of a run. On a terminal, lines of the running jobs are shown below it from `start` to `stop`.

    `running` returns the names of the jobs by key. `redirection` sends the output of jobs to a file, and the display
    prints it from there, or it would run into the live lines.
    """

    def __init__(self, stream: TextIO, results: Path, running: Callable[[], Mapping[str, str]]) -> None:
        self._results, self._running = results, running
        self._reported: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._refresh, daemon=True)
        # Snakemake's messages may contain brackets that are no markup; only the terminal wraps lines.
        self._console = _Console(file=stream, markup=False, highlight=False, emoji=False, soft_wrap=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._console.guard = self._live._lock
        self.live = supports_display(stream)

    def print(self, text: str, failure: bool = False) -> None:
        """Print a line above the live ones."""
        self._console.out(text, style="red" if failure and self.live else None)

    def start(self) -> None:
        """Start showing the running jobs."""
        self._output = tempfile.NamedTemporaryFile(prefix="plumbline-", suffix=".log")  # noqa: SIM115
        self.redirection = f"exec >> '{self._output.name}' 2>&1; "
        self._live.start()
        self._console.show_cursor()  # A killed run could not restore it.
        self._thread.start()

    def stop(self) -> None:
        """Print the rest of the output and remove the live lines."""
        if self._thread.is_alive():
            self._over.set()
            self._thread.join(timeout=10)
            self._live.stop()
            self._output.close()

    def _refresh(self) -> None:
        over, pause = False, 0.0
        while not over:
            over, begun = self._over.wait(pause), time.monotonic()
            with suppress(Exception):  # A display must not break a run.
                for line in self._output.readlines():
                    # Only the last state of a progress bar is printed.
                    self.print(line.decode(errors="replace").rstrip().rpartition("\r")[2])
                lines = [] if over else self._lines()
                self._live.update(Group(*map(Text, lines)), refresh=True)
            # Less often with many jobs or a slow disk.
            pause = max(PERIOD, SHARE * (time.monotonic() - begun))

    def _lines(self) -> list[str]:
        if not _foreground(self._console.file):
            return []
        reports, running = states(self._results), self._running()
        self._reported = {*reports, *self._reported} & running.keys()
        silent = [
            f"{job}  {'ending' if key in self._reported else 'starting'}"
            for key, job in running.items()
            if key not in reports
        ]
        reported = [state for key, state in reports.items() if key in running]
        return job_lines(reported, silent, time.time(), *self._console.size)


def _foreground(stream: IO[str]) -> bool:
    """Whether this process group is in the terminal's foreground."""
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except OSError:
        return True


def watch(results: Path, stream: TextIO | None = None, sleep: Callable[[float], None] = time.sleep) -> None:
    """Show the running jobs until interrupted, or once without a terminal."""
    if not results.is_dir():
        raise PlumblineError(f"There is no folder '{results}'; give the results folder of a study.")
    none = ["No job is running."]
    if not supports_display(stream or sys.stdout):
        print("\n".join(job_lines(states(results).values(), [], time.time(), 200, sys.maxsize) or none))
        return
    console = Console(file=stream)
    with suppress(KeyboardInterrupt), Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            lines = job_lines(states(results).values(), [], time.time(), *console.size) or none
            live.update(Group(*map(Text, lines)), refresh=True)
            sleep(PERIOD)
