"""Files to begin with: a working object of the user's own and its test, made from those in `templates`."""

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
    """Write the template of a kind and its test under a name; nothing is overwritten."""
    if not NAME.fullmatch(name):
        raise PlumblineError(
            f"'{name}' cannot be the name of a {kind}: write small letters, digits and dashes, with a letter first, as "
            f"in 'my-{kind}'."
        )
    if folder.exists() and not folder.is_dir():
        raise PlumblineError(f"'{folder}' is a file; name a folder.")
    module = name.replace("-", "_")
    files = folder / f"{module}.py", folder / f"test_{module}.py"
    for path in files:
        if path.exists():
            raise PlumblineError(f"'{path}' is there already; choose another name or folder.")
    texts = [(TEMPLATES / f"{test}my_{kind}.py").read_text(encoding="utf-8") for test in ("", "test_")]
    taken = _taken(kind, name, module, texts)
    if taken:
        raise PlumblineError(f"'{name}' cannot be the name of a {kind}: {taken}; choose another.")
    class_ = "".join(part.capitalize() for part in module.split("_"))
    for path, text in zip(files, texts, strict=True):
        for own, new in ((f"my-{kind}", name), (f"my_{kind}", module), (f"My{kind.capitalize()}", class_)):
            text = text.replace(own, new)
        store.write_text(path, text)
    return files


def _taken(kind: Kind, name: str, module: str, texts: Iterable[str]) -> str | None:
    """What else has a name already."""
    if name in (*Registry().names(kind), *RESERVED):
        return "plumbline has one of that name"
    if keyword.iskeyword(module) or find_spec(module):
        return f"'{module}' means something else in Python"
    if module != f"my_{kind}" and any(re.search(rf"\b{module}\b", text) for text in texts):
        return f"'{module}' is a word of the template"
    return None


def next_steps(kind: Kind, name: str, file: Path, test: Path) -> str:
    """What to do with new files."""
    return f"""\
Written: {file}, which works as it is, and {test}. Next:

  1. Put your own {kind} in its place:   $EDITOR {file}
  2. See whether it keeps the rules:   plumbline check {file}   (and its own test: pytest {test})
  3. Add it to the config of your study:

       plugins: [{file}]
       {kind}s:
         {name}:"""
