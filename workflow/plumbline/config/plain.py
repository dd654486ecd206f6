"""Requirements for all keys and values of a config, before its schema is checked."""

import math
import re
from typing import Any

from plumbline.errors import PlumblineError

# The texts that may span several lines: a title, and what a language model reads.
LINES = re.compile(r"name|models\..+\.(prompt|answers\.\d+)")
# Keys of these sections are labels of data, which may be numbers.
LABELS = re.compile(r"datasets\..+\.classes")


def check_plain(value: Any, where: str = "") -> None:
    """Refuse keys that are not text, unprintable characters and numbers that are not finite; `where` is the key."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if LABELS.fullmatch(where) and type(key) in (int, float):
                key = str(key)
            if not isinstance(key, str):
                owner = f"`{where}`" if where else "The config"
                raise PlumblineError(f"{owner} has the key {key!r}, which is not text; put it in quotation marks.")
            _check_text(key, f"A key of `{where}`" if where else "A key")
            check_plain(inner, f"{where}.{key}" if where else key)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            check_plain(inner, f"{where}.{number}")
    elif isinstance(value, str):
        _check_text(value.replace("\n", " ") if LINES.fullmatch(where) else value, f"`{where}`")
    elif isinstance(value, float) and not math.isfinite(value):
        raise PlumblineError(f"`{where}` is {value}; write a finite number.")


def _check_text(text: str, where: str) -> None:
    for character in text:
        if not character.isprintable():
            name = "a line break" if character == "\n" else f"the unprintable character {character!r}"
            raise PlumblineError(f"{where} contains {name}; remove it.")
