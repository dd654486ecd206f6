"""The results of checks: faults, which are plain sentences, and notes."""

import logging
import traceback
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)


class Note(str):
    """A result that is not a fault."""


class Checked(Note):
    """What an object was checked on."""


class Unchecked(Note):
    """What was not checked, and why."""


def failure(error: BaseException, path: Path) -> str:
    """An exception as a sentence, with the line of the object's own file; the traceback goes to the log."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    message = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else "no message"
    where = f" ({path.name}, line {lines[-1]})" if lines else ""
    fault = f"it fails with {type(error).__name__}: {message}{where}."
    log.debug(fault, exc_info=error)
    return fault


def type_name(value: Any) -> str:
    """The type of a value with its article."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
