"""Where a checkpoint that is named in a config lies."""

import os
from importlib.util import find_spec
from pathlib import Path

CONFIG = "config.json"


def find_checkpoint(name: str) -> str:
    """The folder that a checkpoint's name means: one of that name, or the one that an installed package of that name
    holds; else the name itself, which the hub may know."""
    if os.path.isfile(Path(name, CONFIG)):
        return name
    package = name.replace("-", "_")
    spec = find_spec(package) if package.isidentifier() else None
    inside = [path for place in (spec and spec.submodule_search_locations) or () for path in Path(place).rglob(CONFIG)]
    return str(min(inside, key=lambda path: (len(path.parts), path)).parent) if inside else name
