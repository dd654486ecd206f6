"""The exceptions that are meant for people."""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path


class PlumblineError(Exception):
    """A sentence for the person who caused it: what was asked, what is wrong, what to do."""


class DamagedError(PlumblineError):
    """A file that a run has written and that cannot be read; a job sets it aside, and the next run makes it anew."""

    def __init__(self, path: str | Path, wrong: str) -> None:
        super().__init__(f"'{path}' {wrong}. Delete it and run again; Snakemake makes it anew.")
        self.path, self.wrong = Path(path), wrong


def nearest(word: str, candidates: Iterable[str]) -> str:
    """The tail of an error about a misspelt name: the nearest right one, or all of them if none is near."""
    known = sorted(candidates)
    close = get_close_matches(word, known, n=1, cutoff=0.5) or [name for name in known if name.startswith(word)]
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known are: {', '.join(known)}." if known else "none is known here."
