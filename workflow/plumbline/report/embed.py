"""JSON inside scripts."""

import json
from typing import Any

from markupsafe import Markup


def embedded(value: Any) -> Markup:
    """Plain values as JSON that is safe inside a script element: no character can end or start an element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def data_script(name: str, value: Any) -> str:
    """A script that passes named values to a page: pages opened from files cannot load data in any other way."""
    return f"plumbline.loaded({embedded(name)},{embedded(value)});\n"
