"""Corrections to Snakemake's scheduler."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

# Snakemake's default for --max-jobs-per-timespan: jobs and seconds.
DEFAULT_LIMIT = (100, 1)


def remove_default_rate_limit(scheduler: Any) -> None:
    """Keep the main process of a long run idle while jobs run.

    With a rate limit, each turn of the scheduler's loop starts a one-second timer that causes another turn, and each
    finished job starts one more such chain, which lasts as long as some job waits for its turn. In Snakemake 9.27 the
    idle main process used a whole core after 300 finished jobs. The default limit protects nothing here, so it is
    removed; a limit that the user has set stays.
    """
    limiter = scheduler.job_rate_limiter
    if limiter is not None and (limiter.max_jobs, limiter.timespan) == DEFAULT_LIMIT:
        scheduler.job_rate_limiter = None


def do_not_retry_user_errors(scheduler: Any) -> None:
    """Do not retry a job that ended with a message for the user: the same input causes the same error.

    Other failures, such as for lack of memory or of a node, are retried according to `retries`.
    """
    handle_error = scheduler._handle_error

    def handle(job: Any, *arguments: Any, **options: Any) -> Any:
        jobs = job.jobs if job.is_group() else [job]
        if any(has_user_message(member.log) for member in jobs):
            job.attempt = max(job.attempt, job.restart_times + 1)
        return handle_error(job, *arguments, **options)

    scheduler._handle_error = handle


def has_user_message(logs: Iterable[str]) -> bool:
    """Whether a job's own log holds a message for the user."""
    files = [Path(str(log)) for log in logs]
    return any(file.is_file() and file.read_bytes().startswith(b"plumbline: ") for file in files)
