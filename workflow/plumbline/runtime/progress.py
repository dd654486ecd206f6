"""What a running job is at: how far, how fast, how long still.

A job keeps it in a small file of its own, which `plumbline.runtime.display` shows. A disk that takes no more fails no
job by this, and no result depends on it.
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
# Seconds between two tellings; on a cluster, whose nodes share a file system, they are rarer.
PERIOD, CLUSTER_PERIOD = 0.5, 5.0
# The rate is that of the last seconds, since the first ones are slow.
WINDOW = 30.0


@dataclass(frozen=True)
class State:
    """A job, by its name, and the subword of work that it is at. Times are seconds since the epoch."""

    job: str
    host: str
    pid: int
    started: float
    told: float
    doing: str = ""
    done: int = 0
    total: int | None = None
    unit: str = ""
    batch: int = 0
    batches: int = 0
    rate: float | None = None
    note: str = ""

    def seconds_left(self, now: float) -> float | None:
        """Seconds until the subword of work is done, as far as its rate tells."""
        if not self.rate or self.total is None:
            return None
        return max(0.0, (self.total - self.done) / self.rate - (now - self.told))


class _Reporter:
    """Keeps a job's state in a file, which is whole or absent."""

    def __init__(self, path: Path, job: str, clock: Callable[[], float], period: float) -> None:
        self.clock, self.period, self.job = clock, period, job
        self._told = self._changed = 0.0
        self.busy, self.stage = False, ""
        self._path, self._fresh = path, path.with_name(f".{path.name}.{os.getpid()}")
        self._state = State(job, platform.node(), os.getpid(), clock(), 0.0)

    def change(self, work: Callable[[], dict[str, Any]] = dict) -> None:
        """Write that another subword of work begins, or that none does, unless they follow each other too fast."""
        if self.clock() >= self._changed + self.period / 10:
            self._changed = self.clock()
            self._write(work())

    def tell(self, work: Callable[[], dict[str, Any]]) -> None:
        """Write how far the work is, unless that was done just now."""
        if self.clock() >= self._told + self.period:
            self._write(work())

    def _write(self, work: dict[str, Any]) -> None:
        self._told = self.clock()
        state = replace(self._state, told=self._told, **work)
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._fresh.write_text(json.dumps(asdict(state)), encoding="utf-8")
            self._fresh.replace(self._path)

    def begin(self) -> None:
        """Write that the job has begun."""
        self._write({})

    def end(self) -> None:
        """Leave nothing."""
        with suppress(OSError):
            self._path.unlink()
            self._path.parent.rmdir()


_reporter: _Reporter | None = None


def job_name(rule: str, keys: Mapping[str, object]) -> str:
    """A job as its line names it; that nothing is changed in a dataset is not worth a word."""
    told = {key: str(value) for key, value in keys.items() if value != "plain"}
    return " ".join([rule, *(f"seeds {value}" if key == "seeds" else value for key, value in told.items())])


def job_key(outputs: Iterable[str]) -> str:
    """What no other job has, and another attempt of the same job has too."""
    return hashlib.sha256("\n".join(map(str, outputs)).encode()).hexdigest()[:16]


@contextmanager
def reporting(
    results: Path, job: str, outputs: Sequence[str], clock: Callable[[], float] = time.time
) -> Iterator[None]:
    """Within it, all progress is that of this job; a second attempt of a job writes over what the first one said."""
    global _reporter
    period = CLUSTER_PERIOD if "SLURM_JOB_ID" in os.environ else PERIOD
    _reporter = _Reporter(results / FOLDER / job_key(outputs), job, clock, period)
    try:
        _reporter.begin()
        yield
    finally:
        _reporter.end()
        _reporter = None


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Within it, a job does what is named, which its own name may say already."""
    before = _reporter.stage if _reporter else ""
    if _reporter:
        _reporter.stage = "" if _reporter.job.endswith(f" {name}") else name
    try:
        yield
    finally:
        if _reporter:
            _reporter.stage = before


class Progress:
    """A subword of a job's work, of so many units; a total of None is unknown. An `update` of several units is a batch.

    A subword within another is not told of, and nothing is outside a job.
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
        self.close()  # An error may have broken it off.

    def describe(self, doing: str, batches: int = 0) -> None:
        """Say what is done from now on, in how many batches if that is known."""
        self._doing, self._batch, self._batches = doing, 0, batches

    def shorten(self, count: int) -> None:
        """So much less is to be done than was said."""
        self.total = self.total and self.total - count

    def note(self, text: str) -> None:
        """Say something more of the work, such as the loss."""
        self._note = text

    def update(self, count: int = 1) -> None:
        """Some more is done."""
        self.done += count
        self._batch += 1
        self._batched = self._batched or count > 1
        if self._reporter:
            self._reporter.tell(self._work)

    def close(self) -> None:
        """It is over."""
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
    """The items, one after the other, and meanwhile how far it is."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    with Progress(total, doing, unit) as progress:
        for item in items:
            yield item
            progress.update()


def states(results: Path) -> dict[str, State]:
    """Where the running jobs of a study are, by their keys; what killed jobs of this machine left is removed."""
    found = {}
    for path in (results / FOLDER).glob("[!.]*"):
        try:
            state = State(**json.loads(path.read_text(encoding="utf-8")))
            if state.host == platform.node() and not _alive(state.pid):
                path.unlink()
                continue
        except (OSError, ValueError, TypeError):  # It ended meanwhile, or is none of ours.
            continue
        found[path.name] = state
    return found


def forget(results: Path) -> None:
    """Remove what jobs that are no more have left."""
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
    """Seconds as minutes and seconds, or hours, minutes and seconds."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
