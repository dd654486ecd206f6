"""Plain values inside scripts."""

import json
from typing import Any

from markupsafe import Markup


def embedded(value: Any) -> Markup:
    """Plain values as JSON that may stand inside a script element: no character of it can end or open one."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def loading(name: str, value: Any) -> str:
    """A script that hands a page these values by their name; browsers read no other file beside a page from files."""
    return f"plumbline.loaded({embedded(name)},{embedded(value)});\n"
