"""What is told of an object: faults, which are plain sentences, and notes."""

import logging
import traceback
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)


class Note(str):
    """What is told of an object that is no fault."""


class Tried(Note):
    """What an object was tried on."""


class Untried(Note):
    """What could not be tried, and why."""


def failure(error: BaseException, path: Path) -> str:
    """An exception as a sentence: its type, its message and the line of the object's own file that it came through.

    The traceback goes to the log.
    """
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    message = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else "no message"
    where = f" ({path.name}, line {lines[-1]})" if lines else ""
    told = f"it fails with {type(error).__name__}: {message}{where}."
    log.debug(told, exc_info=error)
    return told


def type_name(value: Any) -> str:
    """What kind of thing a value is."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
