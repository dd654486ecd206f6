"""Snakemake's log events: records of the jobs of a run, and a line for each job that starts, ends or fails.

The handler has two uses. `plumbline plan` passes it to a dry run (`--logger plumbline`), where it writes the jobs to a
file. A real run attaches it in `onstart` (`plumbline.runtime.run`), so that plain `snakemake` needs no plug-in.
"""

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from plumbline.runtime.progress import clock, job_key, job_name

# The variable that names the file for the jobs of a dry run.
PLAN = "PLUMBLINE_PLAN"
# Snakemake's terminal handler, which this one replaces.
SNAKEMAKE_HANDLER = "DefaultStreamHandler"
# Events and messages of Snakemake that our lines replace.
SILENT_EVENTS = ("progress", "shellcmd", "job_started", "resources_info", "group_error")
SILENT_MESSAGES = ("Select jobs to execute", "Trying to restart job")
NO_REASON = "it ended without a message"
# Rules that only collect targets.
TARGETS = ("all", "tables", "figures")


@dataclass
class JobRecord:
    """A job as reported by the events, in its last attempt. Times are seconds since the epoch."""

    rule: str
    wildcards: dict[str, str]
    threads: int
    gpus: int
    minutes: int | None
    inputs: list[str]
    outputs: list[str]
    logs: list[str]
    started: float = 0.0
    ended: float | None = None
    failed: bool = False
    # Why it failed, and whether it failed as one of a group.
    reason: str = ""
    grouped: bool = False
    name: str = field(init=False)
    key: str = field(init=False)

    def __post_init__(self) -> None:
        self.name, self.key = job_name(self.rule, self.wildcards), job_key(self.outputs)

    @property
    def failure(self) -> str:
        """The job's name, the reason of its failure, and its log."""
        return f"{self.name}: {self.reason}{f' ({self.logs[0]})' if self.logs else ''}"


def job_record(fields: dict[str, Any], now: float) -> JobRecord:
    """The job of an event `job_info`."""
    resources = dict(fields["resources"].items())
    return JobRecord(
        fields["rule_name"],
        dict(fields["wildcards"] or {}),
        fields["threads"],
        int(resources.get("gpu", 0)),
        resources.get("runtime"),
        list(map(str, fields["input"])),
        list(map(str, fields["output"])),
        list(map(str, fields["log"])),
        now,
    )


def failure_reason(log: Path, message: str) -> str:
    """Why a job failed: the message or the exception in its log, or else Snakemake's message."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    lines = text.splitlines()
    messages = [line.removeprefix("plumbline: ") for line in lines if line.startswith("plumbline: ")]
    if messages:
        return messages[-1]
    # The frames of a traceback are indented; the exception and its notes are not.
    if "Traceback" in text:
        last = max((number for number, line in enumerate(lines) if line.startswith(" ")), default=-1)
        return ". ".join(line.removesuffix(".") for line in lines[last + 1 :] if line) + "."
    return message or NO_REASON


def exception_cause(error: BaseException | None) -> str:
    """The cause of a failed job in its exception: a signal, an error of Snakemake's, or nothing."""
    while error is not None:
        if isinstance(error, subprocess.CalledProcessError):
            # A shell exits with 128 + the signal that ended its command.
            signal = -error.returncode if error.returncode < 0 else error.returncode - 128
            names = {2: "interrupted", 9: "killed by signal 9, perhaps for lack of memory"}
            return names.get(signal, f"killed by signal {signal}") if signal > 0 else ""
        if error.__context__ is None:
            return str(error)
        error = error.__context__
    return ""


class LogHandler(LogHandlerBase):
    """Records the jobs of a run and, once attached to a logger, prints their lines."""

    def __post_init__(self) -> None:
        self.jobs: dict[int, JobRecord] = {}
        self.began, self.now = time.time(), time.time
        self._expected: Mapping[str, int] = {}
        self._total, self._finished = 0, 0
        self._causes: dict[int | None, str] = {}
        self._default: logging.Handler | None = None

    def attach(
        self,
        logger: logging.Logger,
        jobs: Mapping[str, int],
        print_line: Callable[[str, bool], None],
        starts: bool = True,
    ) -> None:
        """Replace Snakemake's own handler in a run of so many `jobs` of each rule, targets not counted. `print_line`
        takes a line and whether it reports a failure; with `starts`, jobs also have a line when they start."""
        self._expected, self._total = jobs, sum(jobs.values())
        self._print, self._starts = print_line, starts
        self.began = self.now()
        logger.addHandler(self)
        for handler in [other for other in logger.handlers if other.name == SNAKEMAKE_HANDLER]:
            self._default = handler
            logger.removeHandler(handler)

    def emit(self, record: logging.LogRecord) -> None:
        """Record an event and print its line."""
        event, fields = getattr(record, "event", None), vars(record)
        if event == LogEvent.JOB_INFO:
            job = self.jobs[fields["jobid"]] = job_record(fields, self.now())
            line = f"started  {job.name}" if self._default and self._starts and job.rule not in TARGETS else ""
        elif event == LogEvent.JOB_FINISHED:
            line = self._job_finished(fields["job_id"])
        elif event == LogEvent.JOB_ERROR:
            line = self._job_failed(fields)
        elif event == LogEvent.ERROR and fields.get("exception") == "RuleException":
            # The event `job_error` follows, from the same thread.
            self._causes[record.thread] = exception_cause(sys.exc_info()[1])
            return
        else:
            self._print_other(record, event)
            return
        if line and self._default and self._default.filter(record):
            stamp = time.strftime("%H:%M:%S", time.localtime(self.now()))
            self._print(f"[{stamp}] {line}", event == LogEvent.JOB_ERROR)

    def _job_finished(self, number: int) -> str:
        if number not in self.jobs:
            self._finished += 1
            return ""
        job = self.jobs[number]
        job.ended, job.failed = self.now(), False
        if job.rule in TARGETS:
            return ""
        self._finished += 1
        line = f"finished {job.name} in {clock(job.ended - job.started)}; {self._finished} of {self._total} done"
        # The first jobs are no estimate of the others.
        if self._finished * 10 >= self._total:
            line += f", about {clock(self._seconds_left())} left"
        return line

    def _seconds_left(self) -> float:
        """The time of the jobs that are left, as many at a time as so far: each as long as the mean of its rule or, of
        a rule that is still to come, the median of all."""
        taken: dict[str, list[float]] = {}
        for job in self.jobs.values():
            if job.ended is not None and not job.failed and job.rule not in TARGETS:
                taken.setdefault(job.rule, []).append(job.ended - job.started)
        all_taken = [seconds for of_rule in taken.values() for seconds in of_rule]
        left = sum(
            max(0, count - len(taken.get(rule, []))) * (mean(taken[rule]) if rule in taken else median(all_taken))
            for rule, count in self._expected.items()
        )
        return left * (self.now() - self.began) / (sum(all_taken) or 1.0)

    def _job_failed(self, fields: dict[str, Any]) -> str:
        job = self.jobs.get(fields["jobid"])
        cause = self._causes.pop(fields.get("thread"), "")
        if job is None:
            return ""
        job.ended, job.failed, job.grouped = self.now(), True, bool(fields.get("indent"))
        job.reason = failure_reason(Path(job.logs[0]) if job.logs else Path(), str(fields["rule_msg"] or "") or cause)
        # Snakemake reports all jobs of a failed group; those without a reason did not fail themselves.
        return "" if job.grouped and job.reason == NO_REASON else f"failed   {job.failure}"

    def _print_other(self, record: logging.LogRecord, event: LogEvent | None) -> None:
        if event in SILENT_EVENTS or str(record.msg).startswith(SILENT_MESSAGES):
            return
        if self._default and self._default.filter(record) and (line := self._default.format(record)):
            self._print(line, record.levelno >= logging.ERROR)

    def running(self) -> dict[str, str]:
        """The names of the running jobs, by key."""
        return {job.key: job.name for job in list(self.jobs.values()) if job.ended is None}

    def failures(self) -> list[JobRecord]:
        """The jobs that failed after all retries; of a group, those with a reason, or all if none has one."""
        failed = [job for job in self.jobs.values() if job.failed]
        explained = any(job.grouped and job.reason != NO_REASON for job in failed)
        return [job for job in failed if not (explained and job.grouped and job.reason == NO_REASON)]

    def close(self) -> None:
        """Write the jobs of a dry run for the plan."""
        if PLAN in os.environ:
            lines = [json.dumps(asdict(job)) for job in self.jobs.values()]
            Path(os.environ[PLAN]).write_text("\n".join(lines), encoding="utf-8")
        super().close()

    # Attributes that Snakemake requires of a logger plug-in: this one filters events itself, whatever `--quiet` says,
    # and writes to no stream or file of Snakemake's.
    writes_to_stream = writes_to_file = needs_rulegraph = False
    has_filter = has_formatter = True
