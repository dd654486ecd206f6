"""Write a working object of the user's own and its test from the files in `templates`."""

import keyword
import re
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from plumbline import store
from plumbline.config.names import RESERVED
from plumbline.errors import PlumblineError
from plumbline.registry import Kind, Registry

TEMPLATES = Path(__file__).parent
NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")


def write_new(kind: Kind, name: str, folder: Path) -> tuple[Path, Path]:
    """Write the template of a kind and its test under a new name; nothing is overwritten."""
    if not NAME.fullmatch(name):
        raise PlumblineError(
            f"'{name}' cannot be the name of a {kind}: use lower-case letters, digits and dashes, starting with a "
            f"letter, as in 'my-{kind}'."
        )
    if folder.exists() and not folder.is_dir():
        raise PlumblineError(f"'{folder}' is a file; give a folder.")
    module = name.replace("-", "_")
    files = folder / f"{module}.py", folder / f"test_{module}.py"
    for path in files:
        if path.exists():
            raise PlumblineError(f"'{path}' already exists; choose another name or folder.")
    texts = [(TEMPLATES / f"{test}my_{kind}.py").read_text(encoding="utf-8") for test in ("", "test_")]
    if reason := _unavailable(kind, name, module, texts):
        raise PlumblineError(f"'{name}' cannot be the name of a {kind}: {reason}; choose another name.")
    class_ = "".join(part.capitalize() for part in module.split("_"))
    for path, text in zip(files, texts, strict=True):
        for old, new in ((f"my-{kind}", name), (f"my_{kind}", module), (f"My{kind.capitalize()}", class_)):
            text = text.replace(old, new)
        store.write_text(path, text)
    return files


def _unavailable(kind: Kind, name: str, module: str, texts: Iterable[str]) -> str | None:
    """Why a valid name cannot be used, if so."""
    if name in (*Registry().names(kind), *RESERVED):
        return "plumbline already uses it"
    if keyword.iskeyword(module) or find_spec(module):
        return f"'{module}' is a keyword or module of Python"
    if module != f"my_{kind}" and any(re.search(rf"\b{module}\b", text) for text in texts):
        return f"the template uses '{module}'"
    return None


def next_steps(kind: Kind, name: str, file: Path, test: Path) -> str:
    """Instructions for the new files."""
    return f"""\
Written: {file}, which works unchanged, and {test}. Next:

  1. Replace it with your own {kind}:   $EDITOR {file}
  2. Check that it conforms:   plumbline check {file}   (and its test: pytest {test})
  3. Add it to the config of your study:

       plugins: [{file}]
       {kind}s:
         {name}:"""
