"""Text and JSON files, written atomically."""

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
    """Yield a temporary path next to `path`; rename it to `path` on success, remove it on failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file atomically."""
    with replacing(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write a JSON file with sorted keys."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: str | Path) -> Any:
    """Read a JSON file."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PlumblineError(f"The file '{path}' does not exist.") from error
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedError(path, "is damaged and cannot be read as JSON") from error


# Required keys of a dataset's record.
RECORDED = ("dataset", "classes", "splits", "dropped", "partial")


def read_record(path: str | Path) -> dict[str, Any]:
    """Read the record of a dataset, `dataset.json`, and check that it has the structure that `prepare` writes."""
    record = read_json(path)
    lacking = [key for key in RECORDED if not isinstance(record, dict) or key not in record]
    if lacking or not isinstance(record["classes"], list):
        raise DamagedError(path, f"is not the record of a dataset: it has no {', '.join(lacking) or 'list of classes'}")
    return record
