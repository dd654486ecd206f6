"""Text and JSON files, written whole or not at all."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from plumbline.errors import DamagedError, PlumblineError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path`; rename it to `path` if all went well, remove it if not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with replacing(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write plain values, keys sorted."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: str | Path) -> Any:
    """Read plain values."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PlumblineError(f"The file '{path}' does not exist.") from error
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedError(path, "is damaged and cannot be read as JSON") from error


# What the record of a dataset has at least.
RECORDED = ("dataset", "classes", "splits", "dropped", "partial")


def read_record(path: str | Path) -> dict[str, Any]:
    """Read the record of a dataset, `dataset.json`; another form than that which `prepare` writes is refused."""
    found = read_json(path)
    lacking = [key for key in RECORDED if not isinstance(found, dict) or key not in found]
    if lacking or not isinstance(found["classes"], list):
        raise DamagedError(path, f"is not the record of a dataset: it has no {', '.join(lacking) or 'list of classes'}")
    return found
