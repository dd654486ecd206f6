"""Detection of files of a study that a full disk or a crash has truncated."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def damaged_files(results: Path) -> Iterator[Path]:
    """The truncated Parquet, safetensors and JSON files under a folder; their values are not checked."""
    for path in sorted(results.rglob("*")):
        if path.is_file() and not path.name.startswith(".") and is_damaged(path):
            yield path


def is_damaged(path: Path) -> bool:
    """Whether a file is truncated; files of other formats are not checked."""
    checks = {
        ".parquet": pq.read_metadata,
        ".safetensors": _check_size,
        ".json": lambda path: json.loads(path.read_text("utf-8")),
    }
    check = checks.get(path.suffix)
    try:
        if check:
            check(path)
    except (pa.ArrowException, OSError, ValueError):
        return True
    return False


def _check_size(path: Path) -> None:
    """Check the file size against the header: eight bytes of its length, then the offsets of the tensors."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > size - 8:
            raise ValueError("its header is cut off")
        header = json.loads(file.read(length))
    ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
    if 8 + length + max(ends, default=0) != size:
        raise ValueError("its tensors are cut off")
