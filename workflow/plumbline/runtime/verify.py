"""Are the files of a study whole? A file that was cut off, on a full disk or by a crash, is named and set aside."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def damaged(results: Path) -> Iterator[Path]:
    """The tables, tensors and records under a folder that do not reach their ends; what they hold is not looked at."""
    for path in sorted(results.rglob("*")):
        check = {".parquet": _table, ".safetensors": _tensors, ".json": _record}.get(path.suffix)
        if check and path.is_file() and not path.name.startswith("."):
            try:
                check(path)
            except (pa.ArrowException, OSError, ValueError):
                yield path


def _table(path: Path) -> None:
    pq.read_metadata(path)


def _record(path: Path) -> None:
    json.loads(path.read_text(encoding="utf-8"))


def _tensors(path: Path) -> None:
    """The header comes first: eight bytes of its length, and then where each tensor ends."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > size - 8:
            raise ValueError("its header is cut off")
        header = json.loads(file.read(length))
    ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
    if 8 + length + max(ends, default=0) != size:
        raise ValueError("its tensors are cut off")
