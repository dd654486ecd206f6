"""Exceptions whose messages are written for users."""

import json
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

# Old names of config keys, options, their values, registered objects and facts, and their new names. It is no Python
# module because the provenance hash of nearly every job includes this one: a new entry must rerun nothing.
RENAMED = Path(__file__).parent / "config" / "renamed.json"


class PlumblineError(Exception):
    """A sentence for the user: what was given, what is wrong, what to do."""


class DamagedError(PlumblineError):
    """A file written by an earlier job cannot be read; the job sets it aside, and the next run regenerates it."""

    def __init__(self, path: str | Path, wrong: str) -> None:
        super().__init__(f"'{path}' {wrong}. Delete it and run again; Snakemake regenerates it.")
        self.path, self.wrong = Path(path), wrong


def nearest(word: str, candidates: Iterable[str]) -> str:
    """The end of an error message about an unknown name: its new name, else the most similar one, else all names."""
    known = sorted(candidates)
    renamed = json.loads(RENAMED.read_text(encoding="utf-8")).get(word)
    if renamed in known:
        return f"it was renamed to '{renamed}'."
    close = get_close_matches(word, known, n=1, cutoff=0.5) or [name for name in known if name.startswith(word)]
    if close:
        return f"did you mean '{close[0]}'?"
    return f"choose from: {', '.join(known)}." if known else "none is available."
