"""What failed in a run of Snakemake, and why, told in a few lines at its end."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

# The jobs of a group that failed are indented, after what is said of the group.
_ERROR = re.compile(r"^(?P<group> *)Error in rule (?P<rule>[\w-]+):\n(?P<facts>(?:^ +\w.*\n)+)", re.MULTILINE)
_GROUP = re.compile(r"^    message: (.*)\n(?:^    log: .*\n)?^    jobs:\n", re.MULTILINE)
_KILLED = re.compile(r"returned non-zero exit status (1[2-9]\d)\.|died with <Signals\.(\w+): (\d+)>")
_LOGS = "results/logs/"
NOTHING = "it ended without a word"


class Failure(NamedTuple):
    """A job that failed for good: its rule, what it was about, the reason, and the file that says more."""

    rule: str
    about: str
    reason: str
    log: str


def failures(told: str, folder: Path) -> list[Failure]:
    """The jobs that a log of Snakemake's says have failed and not finished since; their own logs lie in `folder`.

    Of a group all jobs are said to have failed; those of which nothing more is known are left out if others say why.
    """
    found: dict[str, Failure] = {}
    grouped: set[str] = set()
    silent: set[str] = set()
    for error in _ERROR.finditer(told):
        facts = dict(re.findall(r"^ +(\w+): (.*)$", error["facts"], re.MULTILINE))
        job = facts.get("jobid", "")
        if re.search(rf"^Finished jobid: {job}\b", told[error.end() :], re.MULTILINE):
            continue
        log = facts.get("log", "").removesuffix(" (check log file(s) for error details)").split(", ")[0]
        before = told[: error.start()].splitlines()[-4:]
        message = facts.get("message", "")
        if error["group"]:
            message = [message, *_GROUP.findall(told[: error.start()])][-1]
            grouped.add(job)
            silent |= {job} if reason(folder / log, "", []) == NOTHING else set()
        found[job] = Failure(error["rule"], _about(log), reason(folder / log, message, before), log)
    grouped_reason = any(job in found and job not in silent for job in grouped)
    return [failure for job, failure in found.items() if job not in silent or not grouped_reason]


def tell(failed: Iterable[Failure]) -> str:
    """The end of a run in which jobs failed."""
    lines = [f"  {one.rule}{one.about}: {one.reason}{f' ({one.log})' if one.log else ''}" for one in failed]
    count = "1 job" if len(lines) == 1 else f"{len(lines)} jobs"
    first = f"plumbline: {count} failed; what does not need {'it' if len(lines) == 1 else 'them'} is done."
    return "\n".join([first, *lines, "  The same command goes on from here."])


def _about(log: str) -> str:
    """The keys of a job, which its log's path holds after the name of its rule."""
    _, _, keys = log.removesuffix(".log").removeprefix(_LOGS).partition("/")
    return f" {keys}" if keys else ""


def reason(log: Path, message: str, before: list[str]) -> str:
    """Why a job failed: its last sentence or exception, or Snakemake's message, or the signal that killed it.

    `before` are the lines that Snakemake printed before it reported the failure.
    """
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    sentences = [line.removeprefix("plumbline: ") for line in text.splitlines() if line.startswith("plumbline: ")]
    if sentences:
        return sentences[-1]
    # A traceback is indented; what it comes to, with what was added, is not.
    if "Traceback" in text:
        said = re.split(r"^ .*\n", text, flags=re.MULTILINE)[-1].strip().splitlines()
        return ". ".join(line.removesuffix(".") for line in said) + "."
    if message not in ("", "None"):
        return message
    killed = next((found for line in reversed(before) if (found := _KILLED.search(line))), None)
    if killed:
        signal = int(killed[3] or int(killed[1]) - 128)
        return f"killed by signal {signal}{', perhaps for lack of memory' if signal == 9 else ''}"
    return NOTHING
