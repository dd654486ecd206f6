"""Progress of a running job: its current work, speed and remaining time.

A job writes it to a small file, which `plumbline.runtime.display` shows; the Python API shows it itself. A full disk
fails no job by this, and no result depends on it.
"""

import hashlib
import json
import os
import platform
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

Item = TypeVar("Item")

FOLDER = ".progress"
# Seconds between two reports; longer on a cluster, whose nodes share a file system.
PERIOD, CLUSTER_PERIOD = 0.5, 5.0
# Seconds over which the rate is measured, since the first seconds are slow.
WINDOW = 30.0


@dataclass(frozen=True)
class State:
    """A job and its current work. Times are seconds since the epoch."""

    job: str
    host: str
    pid: int
    started: float
    updated: float
    doing: str = ""
    done: int = 0
    total: int | None = None
    unit: str = ""
    batch: int = 0
    batches: int = 0
    rate: float | None = None
    note: str = ""

    def seconds_left(self, now: float) -> float | None:
        """Seconds until the current work is done at its rate, if known."""
        if not self.rate or self.total is None:
            return None
        return max(0.0, (self.total - self.done) / self.rate - (now - self.updated))


class _StateFile:
    """A file with the state of a job, written atomically."""

    def __init__(self, path: Path) -> None:
        self._path, self._fresh = path, path.with_name(f".{path.name}.{os.getpid()}")

    def write(self, state: State) -> None:
        """Write a state."""
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._fresh.write_text(json.dumps(asdict(state)), encoding="utf-8")
            self._fresh.replace(self._path)

    def remove(self) -> None:
        """Remove the file."""
        with suppress(OSError):
            self._path.unlink()
            self._path.parent.rmdir()


class _Reporter:
    """Calls a function with the state of a job, at most once per period."""

    def __init__(self, publish: Callable[[State], None], job: str, clock: Callable[[], float], period: float) -> None:
        self.clock, self.period, self.job = clock, period, job
        self._publish = publish
        self._reported = self._changed = 0.0
        self.busy, self.stage = False, ""
        self._state = State(job, platform.node(), os.getpid(), clock(), 0.0)

    def change(self, work: Callable[[], dict[str, Any]] = dict) -> None:
        """Report that other work begins, or that none does, unless the last change was just before."""
        if self.clock() >= self._changed + self.period / 10:
            self._changed = self.clock()
            self.write(work())

    def report(self, work: Callable[[], dict[str, Any]]) -> None:
        """Report the progress of the work, unless the last report was just before."""
        if self.clock() >= self._reported + self.period:
            self.write(work())

    def write(self, work: dict[str, Any]) -> None:
        """Report the state of the job, with its current work if any."""
        self._reported = self.clock()
        self._publish(replace(self._state, updated=self._reported, **work))


_reporter: _Reporter | None = None


def job_name(rule: str, keys: Mapping[str, object]) -> str:
    """The name of a job in its line: the rule and its wildcards, without the variant `plain`."""
    shown_keys = {key: str(value) for key, value in keys.items() if value != "plain"}
    return " ".join([rule, *(f"seeds {value}" if key == "seeds" else value for key, value in shown_keys.items())])


def job_key(outputs: Iterable[str]) -> str:
    """A key that is unique to a job and the same for every attempt of it."""
    return hashlib.sha256("\n".join(map(str, outputs)).encode()).hexdigest()[:16]


def _with_prefix(results: Path, outputs: Sequence[str]) -> Path:
    """The folder of results that has a job's outputs: in a module with a prefix, it is below that."""
    prefix, found, _ = f"/{outputs[0]}".rpartition(f"/{results}/")
    return Path(prefix[1:], results) if found else results


@contextmanager
def reporting(
    results: Path, job: str, outputs: Sequence[str], clock: Callable[[], float] = time.time
) -> Iterator[None]:
    """A context in which all progress is reported for this job; a retry overwrites the report of the first attempt."""
    global _reporter
    period = CLUSTER_PERIOD if "SLURM_JOB_ID" in os.environ else PERIOD
    file = _StateFile(_with_prefix(results, outputs) / FOLDER / job_key(outputs))
    _reporter = _Reporter(file.write, job, clock, period)
    try:
        _reporter.write({})
        yield
    finally:
        file.remove()
        _reporter = None


@contextmanager
def showing(show: Callable[[State], None], job: str) -> Iterator[None]:
    """A context in which a function gets the progress of the work of this process."""
    global _reporter
    before, _reporter = _reporter, _Reporter(show, job, time.time, PERIOD)
    try:
        _reporter.write({})
        yield
    finally:
        _reporter = before


@contextmanager
def stage(name: str) -> Iterator[None]:
    """A context that names the current stage of a job, unless the job's name already ends in it."""
    before = _reporter.stage if _reporter else ""
    if _reporter:
        _reporter.stage = "" if _reporter.job.endswith(f" {name}") else name
    try:
        yield
    finally:
        if _reporter:
            _reporter.stage = before


class Progress:
    """The progress of `total` units of work, or of an unknown number. An `update` of several units is a batch.

    Nested progress is not reported, nor is progress outside a job.
    """

    def __init__(self, total: int | None, doing: str, unit: str, done: int = 0) -> None:
        self.total, self.done = total, done
        self._doing, self._unit, self._note = doing, unit, ""
        self._batch, self._batches, self._batched = 0, 0, False
        self._reporter = None if _reporter is None or _reporter.busy else _reporter
        if self._reporter:
            self._reporter.busy = True
            self._samples = deque([(self._reporter.clock(), done)])
            self._reporter.change(self._work)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()  # After an error.

    def describe(self, doing: str, batches: int = 0) -> None:
        """Describe the work from now on, with its number of batches if known."""
        self._doing, self._batch, self._batches = doing, 0, batches

    def shorten(self, count: int) -> None:
        """Subtract units from the total."""
        self.total = self.total and self.total - count

    def note(self, text: str) -> None:
        """Add a note, such as the loss."""
        self._note = text

    def update(self, count: int = 1) -> None:
        """Count finished units."""
        self.done += count
        self._batch += 1
        self._batched = self._batched or count > 1
        if self._reporter:
            self._reporter.report(self._work)

    def close(self) -> None:
        """End the work."""
        if self._reporter:
            self._reporter.busy = False
            self._reporter.change()
            self._reporter = None

    def _work(self) -> dict[str, Any]:
        assert self._reporter
        return dict(
            doing=", ".join(filter(None, [self._reporter.stage, self._doing])),
            done=self.done,
            total=self.total,
            unit=self._unit,
            batch=self._batch if self._batched else 0,
            batches=self._batches,
            rate=self._rate(self._reporter.clock()),
            note=self._note,
        )

    def _rate(self, now: float) -> float | None:
        """Units per second in the window."""
        while len(self._samples) > 1 and self._samples[0][0] < now - WINDOW:
            self._samples.popleft()
        then, before = self._samples[0]
        self._samples.append((now, self.done))
        return (self.done - before) / (now - then) if now > then and self.done > before else None


def shown(items: Iterable[Item], doing: str, unit: str, total: int | None = None) -> Iterator[Item]:
    """Iterate over the items and report the progress."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    with Progress(total, doing, unit) as progress:
        for item in items:
            yield item
            progress.update()


def states(results: Path) -> dict[str, State]:
    """The states of a study's running jobs, by key; files of killed jobs of this machine are removed."""
    running = {}
    for path in (results / FOLDER).glob("[!.]*"):
        try:
            state = State(**json.loads(path.read_text(encoding="utf-8")))
            if state.host == platform.node() and not _alive(state.pid):
                path.unlink()
                continue
        except (OSError, ValueError, TypeError):  # The job has ended, or the file is not ours.
            continue
        running[path.name] = state
    return running


def remove_states(results: Path) -> None:
    """Remove the files of jobs that have ended."""
    with suppress(OSError):
        for path in (results / FOLDER).iterdir():
            path.unlink()
        (results / FOLDER).rmdir()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


def clock(seconds: float) -> str:
    """Seconds as `m:ss` or `h:mm:ss`."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
