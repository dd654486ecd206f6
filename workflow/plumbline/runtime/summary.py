"""The end of a run in a few lines: what ran, what was left out, how published numbers compare, and where to look."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from plumbline.errors import PlumblineError
from plumbline.papers.comparison import verdict
from plumbline.papers.schemas import REPRODUCTION
from plumbline.planning.jobs import TARGETS
from plumbline.runtime.progress import clock, fit
from plumbline.store import read_table

WIDTH = 120
# So many rules and so many kinds of reasons are named.
NAMED_RULES, NAMED_REASONS = 8, 3
_EVENT = re.compile(
    r"^\[(?P<time>\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})\]\n"
    r"(?:(?:local)?rule \w+:\n(?:^ +.*\n)*?^ +jobid: (?P<started>\d+)$"
    r"|Finished jobid: (?P<finished>\d+) \(Rule: (?P<rule>\w+)\)$)?",
    re.MULTILINE,
)


def durations(told: str) -> tuple[list[tuple[str, float]], float]:
    """The rule and seconds of each finished job that a log of Snakemake's tells of, and the seconds of all together.

    Of a job that was tried twice the last attempt counts. On a cluster the wait in the queue is part of the seconds.
    """
    begun: dict[str, float] = {}
    found, stamps = [], []
    for event in _EVENT.finditer(told):
        stamps.append(datetime.strptime(event["time"], "%a %b %d %H:%M:%S %Y").timestamp())
        if event["started"]:
            begun[event["started"]] = stamps[-1]
        elif event["finished"] and event["rule"] not in TARGETS:
            found.append((event["rule"], stamps[-1] - begun.get(event["finished"], stamps[-1])))
    return found, max(stamps) - min(stamps) if stamps else 0.0


def ran(told: str, up_to_date: int) -> list[str]:
    """What was done in a run, and which rule took most of it."""
    jobs, wall = durations(told)
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


def left_out(reasons: Iterable[str]) -> list[str]:
    """What the study does not run, and why: of the reasons that differ in names alone, the first."""
    kinds: dict[str, list[str]] = {}
    for reason in dict.fromkeys(reasons):
        kinds.setdefault(re.sub(r"'[^']*'", "''", reason), []).append(reason)
    ordered = sorted(kinds.values(), key=len, reverse=True)
    lines = []
    for alike in ordered[:NAMED_REASONS]:
        more = f" ({len(alike) - 1} more of the kind)" if len(alike) > 1 else ""
        lines.append(f"  Left out: {fit(alike[0], WIDTH - len(more) - 13)}{more}.")
    if rest := sum(map(len, ordered[NAMED_REASONS:])):
        lines.append(f"  Left out for other reasons: {_count(rest, 'pair')}; `plumbline runs` lists them all.")
    return lines


def reproduced(results: Path) -> list[str]:
    """How many of the published numbers that the study has were met, if that table is there and whole."""
    try:
        told = read_table(results / "tables/reproduction.parquet", REPRODUCTION)
    except (OSError, PlumblineError):
        return []
    return [f"  {verdict(told.to_pandas())}"] if len(told) else []


def summary(told: str, up_to_date: int, reasons: Sequence[str], results: Path) -> str:
    """The end of a run in which all went well."""
    places = [results / place for place in ("report/index.html", "tables", "figures")]
    found = ", ".join(str(place) for place in places if place.exists())
    see = [f"  See {found}."] if found else []
    return "\n".join([*ran(told, up_to_date), *left_out(reasons), *reproduced(results), *see])


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
