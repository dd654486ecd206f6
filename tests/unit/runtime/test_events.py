"""Snakemake's log events: records of the jobs, their lines, and failures."""

import json
import logging
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.exceptions import RuleException, print_exception
from snakemake.logging import ColorizingTextHandler, DefaultFormatter
from snakemake_interface_logger_plugins.common import LogEvent

from plumbline.runtime.events import PLAN, SNAKEMAKE_HANDLER, LogHandler
from plumbline.runtime.run import count_jobs
from plumbline.runtime.summary import job_summary


class Run:
    """A logger like Snakemake's, whose clock the test sets."""

    def __init__(self, **jobs: int) -> None:
        self.lines: list[str] = []
        self.clock = time.mktime((2026, 11, 16, 9, 0, 0, 0, 0, -1))
        self.logger = logging.Logger("run", logging.INFO)
        default = ColorizingTextHandler(formatter=DefaultFormatter())
        default.name = SNAKEMAKE_HANDLER
        self.logger.addHandler(default)
        self.events = LogHandler(None, None)
        self.events.now = lambda: self.clock
        self.events.attach(self.logger, jobs, lambda line, failure: self.lines.append(line))

    def start(self, job: int, rule: str, log: str = "", **wildcards: str) -> None:
        fields = {"jobid": job, "rule_name": rule, "wildcards": wildcards, "event": LogEvent.JOB_INFO}
        fields |= {"threads": 2, "resources": {"gpu": 1, "runtime": 60}, "log": [log] if log else []}
        self.logger.info(f" Rule: {rule}", extra=fields | {"input": ["x" * 5000], "output": [rule]})

    def finish(self, job: int) -> None:
        self.logger.info(f"Finished jobid: {job}", extra={"job_id": job, "event": LogEvent.JOB_FINISHED})
        self.logger.info(None, extra={"done": 1, "total": 4, "event": LogEvent.PROGRESS})

    def fail(self, job: int, message: str | None = None, grouped: bool = False) -> None:
        fields = {"jobid": job, "rule_msg": message, "indent": grouped, "event": LogEvent.JOB_ERROR}
        self.logger.error("Error in rule", extra=fields)

    def failures(self) -> list[tuple[str, str]]:
        return [(job.name, job.reason) for job in self.events.failures()]


@pytest.fixture
def run() -> Run:
    return Run(train=2, performance=2)


def written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_a_job_has_a_line_at_its_start_and_one_at_its_end_with_the_time_left(run):
    run.logger.info("Select jobs to execute...")
    run.start(3, "train", dataset="sst", variant="plain", model="bilstm-tanh", seeds="0-1")
    run.clock += 10
    run.start(7, "performance")
    assert list(run.events.running().values()) == ["train sst bilstm-tanh seeds 0-1", "performance"]
    run.clock += 55
    run.finish(3)
    run.clock += 3
    run.finish(7)
    assert run.lines == [
        "[09:00:00] started  train sst bilstm-tanh seeds 0-1",
        "[09:00:10] started  performance",
        "[09:01:05] finished train sst bilstm-tanh seeds 0-1 in 1:05; 1 of 4 done, about 3:15 left",
        "[09:01:08] finished performance in 0:58; 2 of 4 done, about 1:08 left",
    ]
    assert run.events.running() == {}


def test_targets_are_no_jobs():
    """So that the last line and the summary count the same."""
    run = Run(prepare=1)
    for job, rule in enumerate(["prepare", "all"]):
        run.start(job, rule)
        run.clock += 5
        run.finish(job)
    assert run.lines == [
        "[09:00:00] started  prepare",
        "[09:00:05] finished prepare in 0:05; 1 of 1 done, about 0:00 left",
    ]
    assert job_summary(run.events, 0)[0] == "plumbline: 1 job done in 0:10."
    rules = [SimpleNamespace(rule=SimpleNamespace(name=name)) for name in ("prepare", "train", "all", "tables")]
    assert count_jobs(rules) == {"prepare": 1, "train": 1}


def test_the_time_left_is_shown_once_a_tenth_of_the_jobs_is_done():
    run = Run(prepare=20)
    for job in range(2):
        run.start(job, "prepare")
        run.clock += 5
        run.finish(job)
    assert run.lines[1::2] == [
        "[09:00:05] finished prepare in 0:05; 1 of 20 done",
        "[09:00:10] finished prepare in 0:05; 2 of 20 done, about 1:30 left",
    ]


def test_the_time_left_is_that_of_the_rules_to_come():
    run = Run(train=1, table=9, draw=1)
    run.start(0, "train")
    run.clock += 600
    run.finish(0)
    for job in range(1, 10):
        run.start(job, "table")
        run.clock += 4
        run.finish(job)
    assert run.lines[-5].endswith("8 of 11 done, about 0:12 left")
    assert run.lines[-1].endswith("10 of 11 done, about 0:04 left"), "the median, not the mean with training"


def test_a_failure_has_its_message(run, tmp_path):
    log = written(tmp_path / "train.log", "plumbline: The disk is full.\n")
    run.start(1, "train", log, dataset="sst")
    run.fail(1)
    run.logger.info("Trying to restart job 1.")
    assert run.lines[1:] == [f"[09:00:00] failed   train sst: The disk is full. ({log})"]


def test_an_exception_is_shown_with_its_notes_and_without_its_traceback(run, tmp_path):
    traceback = 'Traceback (most recent call last):\n  File "a.py", line 1, in b\n    c\nValueError: no.\nFrom d.\n'
    run.start(1, "train", written(tmp_path / "train.log", traceback))
    run.fail(1)
    assert run.failures() == [("train", "ValueError: no. From d.")]


def broken_by(run: Run, code: int) -> None:
    """Log an exception as Snakemake does when the command of a job ends with this code."""
    try:
        try:
            raise subprocess.CalledProcessError(code, "python")
        except BaseException:
            raise RuleException("CalledProcessError in file") from None
    except Exception as error:
        extra = {"event": LogEvent.ERROR, "exception": type(error).__name__}
        run.logger.error("RuleException:", extra=extra)


@pytest.mark.parametrize(
    ("code", "message", "reason"),
    [
        (137, None, "killed by signal 9, perhaps for lack of memory"),
        (-15, None, "killed by signal 15"),
        (130, None, "interrupted"),
        (1, "SLURM status is: 'CANCELLED'.", "SLURM status is: 'CANCELLED'."),
        (1, None, "it ended without a message"),
    ],
)
def test_a_job_without_a_message_fails_with_snakemakes_reason(run, code, message, reason):
    run.start(1, "train", dataset="sst")
    broken_by(run, code)
    run.fail(1, message)
    assert run.lines[1:] == [f"[09:00:00] failed   train sst: {reason}"]


def test_exceptions_reach_the_handler_as_snakemake_prints_them(run, monkeypatch):
    monkeypatch.setattr("snakemake.logging.logger", run.logger)
    run.start(1, "train")
    try:
        raise RuleException("Job has no output")
    except RuleException as error:
        print_exception(error)
    run.fail(1)
    assert run.failures() == [("train", "Job has no output")]


def test_a_job_that_failed_twice_counts_once_and_one_that_finished_later_does_not(run):
    for attempt in range(2):
        for job in (7, 8):
            run.start(job, f"rule{job}")
            run.clock += 5
            run.finish(job) if attempt and job == 8 else run.fail(job)
    assert run.failures() == [("rule7", "it ended without a message")]
    assert run.events.jobs[8].ended - run.events.jobs[8].started == 5


def test_of_a_failed_group_jobs_with_a_reason_are_shown(run, tmp_path):
    run.start(1, "score")
    run.fail(1)
    run.start(6, "embed", dataset="sst")
    run.start(7, "train", written(tmp_path / "train.log", "plumbline: The texts are empty.\n"))
    for job in (6, 7):
        run.fail(job, grouped=True)
    assert [name for name, _ in run.failures()] == ["score", "train"]
    assert len([line for line in run.lines if "failed" in line]) == 2


def test_of_a_failed_group_without_a_reason_all_jobs_are_shown(run):
    for job, rule in ((6, "embed"), (7, "train")):
        run.start(job, rule)
        run.fail(job, grouped=True)
    assert [name for name, _ in run.failures()] == ["embed", "train"]


def test_other_messages_stay(run):
    run.logger.warning("A file is older than it should be.")
    assert run.lines == ["A file is older than it should be."]


def test_a_dry_run_leaves_its_jobs_for_the_plan(run, tmp_path, monkeypatch):
    monkeypatch.setenv(PLAN, str(tmp_path / "jobs"))
    run.start(3, "train", dataset="sst")
    run.events.close()
    job = json.loads((tmp_path / "jobs").read_text())
    assert (job["rule"], job["wildcards"], job["threads"]) == ("train", {"dataset": "sst"}, 2)
    assert (job["gpus"], job["minutes"], job["outputs"], len(job["inputs"])) == (1, 60, ["train"], 1)
