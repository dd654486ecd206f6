"""The running jobs of a study on a terminal, a line for each, below whatever else is written to it.

One thread writes to the terminal. All else that a run says, Snakemake as well as its jobs, comes to it by a pipe and is
passed on in whole lines, above the block of live ones. So nothing mixes, however many jobs run at a time.
"""

import atexit
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from plumbline.errors import PlumblineError
from plumbline.runtime.progress import PERIOD, State, columns, fit, line, states

CHUNK = 1 << 16
# The display takes one of so many seconds at most.
SHARE = 20


def wanted(stream: int = 2) -> bool:
    """Whether someone may be watching: there is a terminal that can move its cursor, and it is no CI."""
    return os.isatty(stream) and os.environ.get("TERM", "dumb") != "dumb" and not os.environ.get("CI")


def block(told: Iterable[State], silent: Iterable[str], now: float, width: int, height: int) -> list[str]:
    """The lines of jobs, the oldest first and then those that say nothing themselves, as far as there is room."""
    jobs: list[State | str] = [*sorted(told, key=lambda state: (state.started, state.job)), *sorted(silent)]
    room = max(1, height // 2)
    shown = jobs if len(jobs) <= room else jobs[: room - 1]
    lines = [line(job, now, width) if isinstance(job, State) else fit(job, width) for job in shown]
    return lines if shown is jobs else [*lines, fit(f"… and {len(jobs) - len(shown)} more jobs", width)]


class Screen:
    """A terminal with a block of lines at its end that are written anew; the cursor waits below them."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._lines: list[str] = []

    def size(self) -> tuple[int, int]:
        """Columns and rows. The last column stays free, since terminals differ in what they do after it."""
        with suppress(OSError):
            size = os.get_terminal_size(self._terminal)
            if size.columns > 1:
                return size.columns - 1, size.lines
        return 79, 24

    def show(self, text: bytes, lines: Sequence[str]) -> None:
        """Write a text, which ends a line, above the block, and the block anew, all at once."""
        if not text and list(lines) == self._lines:
            return
        # Where a terminal was made narrower, a line takes several rows.
        rows = sum(1 + max(0, columns(one) - 1) // (self.size()[0] + 1) for one in self._lines)
        erased = f"\x1b[{rows}A\r\x1b[J".encode() if rows else b""
        self._lines = list(lines)
        frame = erased + text + "".join(f"{one}\n" for one in lines).encode(errors="replace")
        while frame:
            select.select([], [self._terminal], [])
            frame = frame[os.write(self._terminal, frame) :]


class Live:
    """Takes over the terminal of a run from `start` to `stop`. `running` gives the names of its jobs by their keys."""

    def __init__(self, results: Path, running: Callable[[], Mapping[str, str]]) -> None:
        self._results, self._running = results, running
        self._heard: set[str] = set()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> bool:
        """From now on what is written to the terminal goes through the pipe; False where nobody watches."""
        if self._thread or not wanted():
            return self._thread is not None
        self._streams = {stream: os.dup(stream) for stream in (1, 2) if os.isatty(stream)}
        self._read, write = os.pipe()
        _flush()
        for stream in self._streams:
            os.dup2(write, stream)
        os.close(write)
        self._screen = Screen(self._streams[2])
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        atexit.register(self.stop)
        return True

    def stop(self) -> None:
        """Give the terminal back, without live lines and with all that was said."""
        if not self._thread:
            return
        _flush()
        for stream, terminal in self._streams.items():
            os.dup2(terminal, stream)
        self._over.set()
        self._thread.join(timeout=10)
        self._thread = None

    def _run(self) -> None:
        text, lines, due = b"", [], 0.0
        while True:
            over = self._over.is_set()
            ready, _, _ = select.select([self._read], [], [], 0 if over else max(0.0, due - time.monotonic()))
            chunk = os.read(self._read, CHUNK) if ready else b""
            if over and not chunk:
                with suppress(OSError):
                    self._screen.show(settled(text) and settled(text) + b"\n", [])
                return
            whole, end, text = (text + chunk).rpartition(b"\n")
            text = text[max(0, text.rstrip(b"\r").rfind(b"\r")) :]
            if (now := time.monotonic()) >= due:
                with suppress(Exception):  # A display must not break a run.
                    lines = self._lines()
                # Where there are many jobs, or the disk is slow, more seldom.
                due = now + max(PERIOD, SHARE * (time.monotonic() - now))
            # Whatever the terminal does, the pipe is emptied: a full one would hold up the run.
            with suppress(OSError):
                self._screen.show(settled(whole) + end, lines)

    def _lines(self) -> list[str]:
        if not _foreground(self._streams[2]):
            return []
        found, running = states(self._results), self._running()
        told = [state for key, state in found.items() if key in running]
        self._heard = {*found, *self._heard} & running.keys()
        silent = [
            f"{job}  {'ending' if key in self._heard else 'starting'}"
            for key, job in running.items()
            if key not in found
        ]
        return block(told, silent, time.time(), *self._screen.size())


def settled(text: bytes) -> bytes:
    """What is left on the screen of lines that some bar wrote again and again."""
    if b"\r" not in text:
        return text
    return b"\n".join(one.rstrip(b"\r").rpartition(b"\r")[2] for one in text.split(b"\n"))


def _foreground(terminal: int) -> bool:
    """Whether the terminal is this run's and not, say, a shell's that has sent it to the background."""
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return True


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()


def watch(results: Path, terminal: int = 1, sleep: Callable[[float], None] = time.sleep) -> None:
    """Show the running jobs until interrupted; where there is no terminal, once."""
    if not results.is_dir():
        raise PlumblineError(f"There is no folder '{results}': name the results of a study.")
    none = ["No job is running."]
    if not wanted(terminal):
        print("\n".join(block(states(results).values(), [], time.time(), 200, sys.maxsize) or none))
        return
    screen = Screen(terminal)
    with suppress(KeyboardInterrupt):
        while True:
            screen.show(b"", block(states(results).values(), [], time.time(), *screen.size()) or none)
            sleep(PERIOD)
    screen.show(b"", [])
