"""The publishers' files under the raw folder: what a dataset declares, what is missing, and reading their text."""

import csv
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from plumbline.errors import PlumblineError
from plumbline.registry import declarations_in


def missing_files(name: str, files: Mapping[str, str], raw: Path, source: str) -> str | None:
    """One sentence about a dataset's files that are not under `raw`: which, where published, where to put them."""
    missing = [path for path in files.values() if not os.path.exists(raw / path)]
    if not missing:
        return _no_files(name, files, raw)
    named = " and ".join(", ".join(f"'{path}'" for path in part) for part in (missing[:-1], missing[-1:]) if part)
    some, which, it = ("file", "is", "it") if len(missing) == 1 else ("files", "are", "them")
    names = "that name" if len(missing) == 1 else "these names"
    return (
        f"Dataset '{name}' needs the {some} {named}, which {which} not in the folder '{raw}': "
        f"get {it} from {source} and put {it} there under {names}."
    )


def _no_files(name: str, files: Mapping[str, str], raw: Path) -> str | None:
    """One sentence about what should be a file, as its name with a suffix says, and is a folder."""
    folders = [path for path in files.values() if Path(path).suffix and os.path.isdir(raw / path)]
    if not folders:
        return None
    return (
        f"Dataset '{name}' needs the file '{folders[0]}', and in '{raw}' that is a folder: move it away, and put the "
        "file there."
    )


def declared_files(
    module: str, name: str, raw: Path, only: Iterable[str] | None = None, **options: str
) -> dict[str, Path]:
    """The files that the dataset `name` declares in the Python file `module`, refused if one is missing.

    `only` names the declared files that are needed, where a dataset does not need all; `options` are those that paths
    name, such as ``{folder}``.
    """
    # Read from the declaration, so that a path is written down once.
    declaration = next(d for d in declarations_in(Path(module)) if d.kind == "dataset" and d.name == name)
    files = {key: declaration.files[key].format(**options) for key in (declaration.files if only is None else only)}
    sentence = missing_files(name, files, raw, declaration.source)
    if sentence:
        raise PlumblineError(sentence)
    return {key: raw / path for key, path in files.items()}


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """The lines of a text file that are not blank, with their numbers from 1."""
    # Bytes are cut at line feeds only: str.splitlines would also cut at characters that texts may hold.
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode(encoding).strip("\r\n")
            except UnicodeDecodeError:
                raise PlumblineError(
                    f"'{path}', line {number} is not {encoding} text: the file is damaged, get it again."
                ) from None
            if text.strip():
                yield number, text


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """The whole text of a file, its line ends as they are."""
    try:
        return path.read_bytes().decode(encoding)
    except UnicodeDecodeError:
        raise PlumblineError(f"'{path}' is not {encoding} text: the file is damaged, get it again.") from None


def read_csv(path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """The rows of a comma-separated file with the number of their last line; backslashes stay as they are.

    A field in quotation marks may hold the delimiter, line ends and, doubled, quotation marks.
    """
    number = 0

    def lines() -> Iterator[str]:
        nonlocal number
        for place, line in read_lines(path):
            number = place
            yield f"{line}\n"

    try:
        for row in csv.reader(lines(), delimiter=delimiter):
            yield number, row
    except csv.Error as error:
        raise PlumblineError(f"'{path}', line {number} is no row of a csv file ({error}): get it again.") from None
