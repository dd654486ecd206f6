"""Published files under the raw folder: those that a dataset declares, missing ones, and reading their text."""

import csv
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from plumbline.errors import PlumblineError
from plumbline.registry import declarations_in


def missing_files(name: str, files: Mapping[str, str], raw: Path, source: str) -> str | None:
    """The message about a dataset's files that are not under `raw`, with their publisher and target path."""
    missing = [path for path in files.values() if not os.path.exists(raw / path)]
    if missing:
        noun, verb, it = ("file", "is", "it") if len(missing) == 1 else ("files", "are", "them")
        names = "that name" if len(missing) == 1 else "these names"
        return (
            f"Dataset '{name}' needs the {noun} {join_paths(missing)}, which {verb} not in the folder '{raw}': "
            f"get {it} from {source} and put {it} there under {names}."
        )
    folders = [path for path in files.values() if Path(path).suffix and os.path.isdir(raw / path)]
    if folders:
        return (
            f"Dataset '{name}' needs the file '{folders[0]}', but in '{raw}' that is a folder: move the folder away "
            "and put the file there."
        )
    return None


def join_paths(paths: Sequence[str]) -> str:
    """Quoted paths as an enumeration."""
    return " and ".join(", ".join(f"'{path}'" for path in part) for part in (paths[:-1], paths[-1:]) if part)


def declared_files(
    module: str, name: str, raw: Path, only: Iterable[str] | None = None, **options: str
) -> dict[str, Path]:
    """The paths of the files that the dataset `name` declares in the Python file `module`; refused if one is missing.

    `only` names the declared files that are needed, if not all are; `options` are the values of placeholders in paths,
    such as ``{folder}``.
    """
    # Read from the declaration, so that each path is written once.
    declaration = next(d for d in declarations_in(Path(module)) if d.kind == "dataset" and d.name == name)
    files = {key: declaration.files[key].format(**options) for key in (declaration.files if only is None else only)}
    if message := missing_files(name, files, raw, declaration.source):
        raise PlumblineError(message)
    return {key: raw / path for key, path in files.items()}


def read_lines(
    path: Path, encoding: str = "utf-8", advice: str = "the file is damaged, download it again"
) -> Iterator[tuple[int, str]]:
    """The lines of a text file that are not blank, with their numbers from 1; `advice` ends the message about bytes of
    another encoding."""
    # Bytes are split at line feeds only: str.splitlines also splits at characters that texts may contain.
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode(encoding).strip("\r\n")
            except UnicodeDecodeError:
                raise PlumblineError(
                    f"'{path}', line {number} is not {encoding.removesuffix('-sig')} text: {advice}."
                ) from None
            if text.strip():
                yield number, text


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """The text of a file, its line ends unchanged."""
    try:
        return path.read_bytes().decode(encoding)
    except UnicodeDecodeError:
        raise PlumblineError(f"'{path}' is not {encoding} text: the file is damaged, download it again.") from None


def read_csv(path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """The rows of a comma-separated file with the number of their last line; backslashes are plain characters.

    A field in quotation marks may contain the delimiter, line ends and, doubled, quotation marks.
    """
    number = 0

    def lines() -> Iterator[str]:
        nonlocal number
        for line_number, line in read_lines(path):
            number = line_number
            yield f"{line}\n"

    try:
        for row in csv.reader(lines(), delimiter=delimiter):
            yield number, row
    except csv.Error as error:
        raise PlumblineError(
            f"'{path}', line {number} is not a row of a CSV file ({error}): download it again."
        ) from None
