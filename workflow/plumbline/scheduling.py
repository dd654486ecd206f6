"""Corrections to Snakemake's scheduler."""

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
