"""The log of a run in a file: a line when a job starts, one when it ends, failures with their reason."""

import io
import logging
import time
from pathlib import Path

import pytest
from snakemake.logging import ColorizingTextHandler, DefaultFormatter
from snakemake_interface_logger_plugins.common import LogEvent

from plumbline.runtime.run_log import HANDLER, make_brief


class Run:
    """A logger like Snakemake's, whose clock the test sets."""

    def __init__(self, jobs: int) -> None:
        self.stream, self.clock = io.StringIO(), time.mktime((2026, 11, 16, 9, 0, 0, 0, 0, -1))
        self.logger = logging.Logger("run", logging.INFO)
        handler = ColorizingTextHandler(stream=self.stream, formatter=DefaultFormatter())
        handler.name = HANDLER
        self.logger.addHandler(handler)
        make_brief(self.logger, jobs, lambda: self.clock)

    def start(self, job: int, rule: str, **wildcards: str) -> None:
        fields = {"jobid": job, "rule_name": rule, "wildcards": wildcards, "event": LogEvent.JOB_INFO}
        fields |= {"rule_msg": None, "input": ["x" * 5000], "output": [], "log": [], "reason": "Missing output files"}
        self.logger.info(f" Rule: {rule}", extra=fields)

    def finish(self, job: int) -> None:
        self.logger.info(f"Finished jobid: {job}", extra={"job_id": job, "event": LogEvent.JOB_FINISHED})
        self.logger.info(None, extra={"done": 1, "total": 4, "event": LogEvent.PROGRESS})

    def fail(self, job: int, rule: str, message: str | None = None, log: str = "") -> None:
        fields = {"jobid": job, "rule_name": rule, "rule_msg": message, "log": [log] if log else []}
        self.logger.error(f"Error in rule {rule}", extra=fields | {"event": LogEvent.JOB_ERROR})

    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


@pytest.fixture
def run() -> Run:
    return Run(jobs=4)


def test_a_job_is_a_line_at_its_start_and_one_at_its_end_with_the_time_left(run):
    run.logger.info("Select jobs to execute...")
    run.start(3, "train", dataset="sst", variant="plain", model="bilstm-tanh", seeds="0-1")
    run.clock += 10
    run.start(7, "performance")
    run.clock += 55
    run.finish(3)
    run.clock += 3
    run.finish(7)
    assert run.lines() == [
        "[09:00:00] started  train sst bilstm-tanh seeds 0-1",
        "[09:00:10] started  performance",
        "[09:01:05] finished train sst bilstm-tanh seeds 0-1 in 1:05; 1 of 4 done, about 3:15 left",
        "[09:01:08] finished performance in 0:58; 2 of 4 done, about 1:08 left",
    ]


def test_the_time_left_is_told_once_a_tenth_of_the_jobs_is_done():
    run = Run(jobs=20)
    for job in range(2):
        run.start(job, "prepare")
        run.clock += 5
        run.finish(job)
    assert run.lines()[1::2] == [
        "[09:00:05] finished prepare in 0:05; 1 of 20 done",
        "[09:00:10] finished prepare in 0:05; 2 of 20 done, about 1:30 left",
    ]


def test_a_failure_has_its_sentence(run, tmp_path: Path):
    log = tmp_path / "train.log"
    log.write_text("plumbline: The disk is full.\n")
    run.start(1, "train", dataset="sst")
    run.fail(1, "train", log=str(log))
    run.logger.info("Trying to restart job 1.")
    assert run.lines()[1:] == [f"[09:00:00] failed   train sst: The disk is full. ({log})"]


@pytest.mark.parametrize(
    ("before", "message", "reason"),
    [
        ("", "SLURM status is: 'CANCELLED'.", "SLURM status is: 'CANCELLED'."),
        (
            "RuleException:\nCalledProcessError in file 'x.smk', line 3:\nCommand 'x' died with <Signals.SIGKILL: 9>.",
            None,
            "killed by signal 9, perhaps for lack of memory",
        ),
    ],
)
def test_a_job_that_says_nothing_fails_with_what_snakemake_saw(run, before, message, reason):
    run.start(1, "train", dataset="sst")
    if before:
        run.logger.error(before)
    run.fail(1, "train", message)
    assert run.lines()[1:] == [f"[09:00:00] failed   train sst: {reason}"]


def test_other_messages_stay(run):
    run.logger.warning("A file is older than it should be.")
    assert run.lines() == ["A file is older than it should be."]
