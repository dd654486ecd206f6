"""The log of a run in a file or in CI: one line when a job starts and one when it ends.

Snakemake prints the inputs, the outputs and the reason of every job, in lines of several thousand characters. Its own
log file below `.snakemake/log` keeps them.
"""

import logging
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from plumbline.runtime.failures import NOTHING, reason
from plumbline.runtime.progress import clock, job_name

# Snakemake's handler for the terminal.
HANDLER = "DefaultStreamHandler"
# Messages about Snakemake's own work. A failed job's line has its reason, and the next line with its name is its second
# attempt.
NOISE = ("Select jobs to execute", "Execute ", "Trying to restart job", "RuleException", "CalledProcessError")
EVENTS_WITHOUT_A_LINE = ("progress", "shellcmd", "job_started", "resources_info")


class _Running(NamedTuple):
    name: str
    started: float


class BriefFormatter(logging.Formatter):
    """One line for each start, end and failure of a job. Other messages are formatted by `other`."""

    def __init__(self, other: logging.Formatter, jobs: int, now: Callable[[], float]) -> None:
        super().__init__()
        self._other, self._jobs, self._now = other, jobs, now
        self._began, self._finished = now(), 0
        self._running: dict[int, _Running] = {}
        self._messages: deque[str] = deque(maxlen=4)

    def format(self, record: logging.LogRecord) -> str:
        """The record's line; an empty string if it has none."""
        event = getattr(getattr(record, "event", None), "value", None)
        fields = vars(record)
        if event == "job_info":
            running = _Running(job_name(fields["rule_name"], fields["wildcards"] or {}), self._now())
            self._running[fields["jobid"]] = running
            return self._line("started ", running.name)
        if event == "job_finished":
            return self._job_finished(fields["job_id"])
        if event == "job_error":
            return self._job_failed(fields)
        if event == "group_error":
            # Its jobs follow, each with its own line.
            self._messages.append(str(getattr(record, "msg", "")))
            return ""
        text = str(record.msg)
        if event in EVENTS_WITHOUT_A_LINE or text.startswith(NOISE):
            self._messages.extend(text.splitlines())
            return ""
        return self._other.format(record)

    def _job_finished(self, job: int) -> str:
        self._finished += 1
        if job not in self._running:
            return ""
        name, started = self._running[job]
        progress = f"{self._finished} of {self._jobs} done"
        # The first jobs say little about the others.
        if self._finished * 10 >= self._jobs:
            seconds_left = (self._now() - self._began) / self._finished * max(0, self._jobs - self._finished)
            progress += f", about {clock(seconds_left)} left"
        return self._line("finished", f"{name} in {clock(self._now() - started)}; {progress}")

    def _job_failed(self, fields: dict[str, Any]) -> str:
        name = self._running[fields["jobid"]].name if fields["jobid"] in self._running else fields["rule_name"]
        log = next(iter(fields["log"] or []), "")
        why = reason(Path(log), str(fields["rule_msg"] or ""), list(self._messages))
        # All jobs of a failed group are reported; those that did not fail themselves say nothing.
        if fields.get("indent") and why == NOTHING:
            return ""
        return self._line("failed  ", f"{name}: {why}{f' ({log})' if log else ''}")

    def _line(self, what: str, text: str) -> str:
        return f"[{time.strftime('%H:%M:%S', time.localtime(self._now()))}] {what} {text}"


def make_brief(logger: logging.Logger, jobs: int, now: Callable[[], float] = time.time) -> None:
    """Print brief lines from now on, in a run of so many jobs."""
    for handler in logger.handlers:
        if handler.name == HANDLER and handler.formatter:
            handler.setFormatter(BriefFormatter(handler.formatter, jobs, now))
            handler.addFilter(_no_blank_lines(handler))


def _no_blank_lines(handler: Any) -> Callable[[logging.LogRecord], bool]:
    def keep(record: logging.LogRecord) -> bool:
        # The handler prints a blank line before each job unless this is set.
        handler.last_msg_was_job_info = True
        return True

    return keep
