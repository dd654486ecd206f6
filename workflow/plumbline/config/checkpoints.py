"""Find the folder of a checkpoint that a config names."""

import os
from importlib.util import find_spec
from pathlib import Path

CONFIG = "config.json"


def find_checkpoint(name: str) -> str:
    """The folder of a checkpoint: that of the given name, or the one inside an installed package of that name; else the
    name itself, which may be a model of the hub."""
    if os.path.isfile(Path(name, CONFIG)):
        return name
    package = name.replace("-", "_")
    spec = find_spec(package) if package.isidentifier() else None
    folders = (spec and spec.submodule_search_locations) or ()
    inside = [path for folder in folders for path in Path(folder).rglob(CONFIG)]
    return str(min(inside, key=lambda path: (len(path.parts), path)).parent) if inside else name
