"""The end of a run in a few lines: what ran, what was left out, what was found, and where to look."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import shorten

from plumbline.runtime.events import TARGETS, JobRecord, LogHandler
from plumbline.runtime.progress import clock

WIDTH = 120
# So many rules and so many kinds of reasons are named.
NAMED_RULES, NAMED_REASONS = 8, 3


def ran(events: LogHandler, up_to_date: int) -> list[str]:
    """What was done in a run, and which rule took most of it. On a cluster the wait in the queue counts, too."""
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


def exclusions(reasons: Iterable[str]) -> list[str]:
    """What the study does not run, and why: of the reasons that differ in names alone, the first."""
    kinds: dict[str, list[str]] = {}
    for reason in dict.fromkeys(reasons):
        kinds.setdefault(re.sub(r"'[^']*'", "''", reason), []).append(reason)
    ordered = sorted(kinds.values(), key=len, reverse=True)
    lines = []
    for alike in ordered[:NAMED_REASONS]:
        more = f" ({len(alike) - 1} more of the kind)" if len(alike) > 1 else ""
        lines.append(f"  Left out: {shorten(alike[0], WIDTH - len(more) - 13, placeholder='…')}{more}.")
    if rest := sum(map(len, ordered[NAMED_REASONS:])):
        lines.append(f"  Left out for other reasons: {_count(rest, 'pair')}; `plumbline runs` lists them all.")
    return lines


def failed(jobs: Sequence[JobRecord]) -> list[str]:
    """Which jobs failed, and why."""
    if not jobs:
        return []
    them = "it" if len(jobs) == 1 else "them"
    first = f"plumbline: {_count(len(jobs), 'job')} failed; what does not need {them} is done."
    return [first, *(f"  {job.told}" for job in jobs), "  The same command goes on from here."]


def result_paths(results: Path) -> list[str]:
    """Where to look."""
    found = [str(results / place) for place in ("report/index.html", "tables", "figures") if (results / place).exists()]
    return [f"  See {', '.join(found)}."] if found else []


def summary(
    events: LogHandler, up_to_date: int, reasons: Iterable[str], found: Iterable[str], results: Path, broken: bool
) -> list[str]:
    """The end of a run, with sentences of what it found; of one that is broken, which jobs failed."""
    if broken:
        return [*ran(events, up_to_date), *failed(events.failures())]
    return [*ran(events, up_to_date), *exclusions(reasons), *(f"  {one}" for one in found), *result_paths(results)]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
