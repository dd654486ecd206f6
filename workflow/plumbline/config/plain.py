"""What any value of a config must be, whatever key it is of."""

import math
from typing import Any

from plumbline.errors import PlumblineError


def check_plain(value: Any, where: str = "") -> None:
    """Refuse keys that are no text, text that no file could be named by and numbers that are none; `where` is the
    place in the config."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                shown = f"`{where}` has the key" if where else "The config has the key"
                raise PlumblineError(f"{shown} {key!r}, which is no text; write a name, in quotation marks if need be.")
            _check_text(key, f"A key of `{where}`" if where else "A key")
            check_plain(inner, f"{where}.{key}" if where else key)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            check_plain(inner, f"{where}.{number}")
    elif isinstance(value, str):
        # A title may be written over several lines.
        _check_text(value.replace("\n", " ") if where == "name" else value, f"`{where}`")
    elif isinstance(value, float) and not math.isfinite(value):
        raise PlumblineError(f"`{where}` is {value}; write a finite number.")


def _check_text(text: str, what: str) -> None:
    for sign in text:
        if not sign.isprintable():
            told = "a line break" if sign == "\n" else f"{sign!r}, which cannot be printed"
            raise PlumblineError(f"{what} holds {told}; leave it out.")
