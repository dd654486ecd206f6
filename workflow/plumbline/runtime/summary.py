"""The summary of a run in a few lines: jobs, exclusions, findings, and paths of results."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import shorten

from plumbline.runtime.events import TARGETS, JobRecord, LogHandler
from plumbline.runtime.progress import clock

WIDTH = 120
# The largest number of rules and of kinds of reasons that are named.
NAMED_RULES, NAMED_REASONS = 8, 3


def job_summary(events: LogHandler, up_to_date: int) -> list[str]:
    """The finished jobs of a run and the rule that took longest. On a cluster this includes the wait in the queue."""
    ended = [job for job in events.jobs.values() if job.ended and not job.failed and job.rule not in TARGETS]
    jobs = [(job.rule, (job.ended or 0.0) - job.started) for job in ended]
    wall = events.now() - events.began
    before = f"; {up_to_date} {'was' if up_to_date == 1 else 'were'} up to date" if up_to_date else ""
    lines = [f"plumbline: {_count(len(jobs), 'job')} done in {clock(wall)}{before}."]
    counts, seconds = Counter(rule for rule, _ in jobs), Counter[str]()
    for rule, took in jobs:
        seconds[rule] += round(took)
    if counts:
        named = [f"{rule} {count}" for rule, count in counts.most_common(NAMED_RULES)]
        rest = sum(counts.values()) - sum(count for _, count in counts.most_common(NAMED_RULES))
        lines.append(f"  Jobs: {', '.join(named)}{f', others {rest}' if rest else ''}.")
    if seconds.total():
        [(rule, most)] = seconds.most_common(1)
        lines.append(f"  Longest: {rule}, {clock(most)} of {clock(seconds.total())} of all jobs together.")
    return lines


def exclusion_summary(reasons: Iterable[str]) -> list[str]:
    """What the study leaves out and why; of reasons that differ only in names, the first."""
    kinds: dict[str, list[str]] = {}
    for reason in dict.fromkeys(reasons):
        kinds.setdefault(re.sub(r"'[^']*'", "''", reason), []).append(reason)
    ordered = sorted(kinds.values(), key=len, reverse=True)
    lines = []
    for similar in ordered[:NAMED_REASONS]:
        more = f" ({len(similar) - 1} more of the kind)" if len(similar) > 1 else ""
        lines.append(f"  Left out: {shorten(similar[0], WIDTH - len(more) - 13, placeholder='…')}{more}.")
    if rest := sum(map(len, ordered[NAMED_REASONS:])):
        lines.append(f"  Left out for other reasons: {_count(rest, 'pair')}; `plumbline runs` lists them all.")
    return lines


def failure_summary(jobs: Sequence[JobRecord]) -> list[str]:
    """The failed jobs and the reasons."""
    if not jobs:
        return []
    them = "it" if len(jobs) == 1 else "them"
    first = f"plumbline: {_count(len(jobs), 'job')} failed; all jobs that do not need {them} are done."
    return [first, *(f"  {job.failure}" for job in jobs), "  The same command continues from here."]


def result_paths(results: Path) -> list[str]:
    """The paths of the report, tables and figures that exist."""
    paths = [results / name for name in ("report/index.html", "tables", "figures")]
    existing = [str(path) for path in paths if path.exists()]
    return [f"  See {', '.join(existing)}."] if existing else []


def summary(
    events: LogHandler, up_to_date: int, reasons: Iterable[str], findings: Iterable[str], results: Path, failed: bool
) -> list[str]:
    """The summary of a run: its jobs, exclusions and findings, or, if it failed, the failed jobs."""
    if failed:
        return [*job_summary(events, up_to_date), *failure_summary(events.failures())]
    return [
        *job_summary(events, up_to_date),
        *exclusion_summary(reasons),
        *(f"  {finding}" for finding in findings),
        *result_paths(results),
    ]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
