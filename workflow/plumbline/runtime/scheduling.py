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


def retry_only_what_may_be_cured(scheduler: Any) -> None:
    """Do not start a job again that ended with a sentence for a person: the same input has the same fault again.

    What ended otherwise, such as for lack of memory or on a node that died, is tried again as `retries` says.
    """
    handle_error = scheduler._handle_error

    def handle(job: Any, *arguments: Any, **options: Any) -> Any:
        jobs = job.jobs if job.is_group() else [job]
        if any(ended_with_a_sentence(one.log) for one in jobs):
            job.attempt = max(job.attempt, job.restart_times + 1)
        return handle_error(job, *arguments, **options)

    scheduler._handle_error = handle


def ended_with_a_sentence(logs: Iterable[str]) -> bool:
    """Whether a job's own log says in a sentence why it ended."""
    files = [Path(str(log)) for log in logs]
    return any(file.is_file() and file.read_bytes().startswith(b"plumbline: ") for file in files)
