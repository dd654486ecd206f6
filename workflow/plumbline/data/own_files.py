"""Checks of the user's own files before any job: that they exist and have the columns that the config names. Imported
while the Snakefile is parsed, so it imports nothing heavy."""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from plumbline.config.own_data import FOLDER, HUB, TABLE, own_paths
from plumbline.data.tabular import TableFile
from plumbline.errors import PlumblineError

# The options that name columns.
COLUMNS = ("text", "label", "pair", "split", "evidence")


def check_own(where: str, kind: str, options: Mapping[str, Any]) -> None:
    """Refuse missing files and columns; `kind` is the registered name of the dataset, and others are not checked."""
    if kind == HUB:
        check_package(where)
        return
    for path in own_paths(kind, options) if kind in (TABLE, FOLDER) else []:
        if not os.path.exists(path):
            raise PlumblineError(
                f"`{where}.path`: there is no '{path}' in the working folder, next to the config or in the project."
            )
        if kind == TABLE:
            _check_columns(where, path, options)
        elif not os.path.isdir(path):
            raise PlumblineError(f"`{where}.path`: '{path}' is a file; give a folder of images.")


def _check_columns(where: str, path: str, options: Mapping[str, Any]) -> None:
    table = TableFile(path, *(options[key] for key in ("format", "separator", "encoding", "quotes")))
    for option in COLUMNS:
        if options[option]:
            try:
                table.check_columns([options[option]])
            except PlumblineError as error:
                raise PlumblineError(f"`{where}.{option}`: {error}") from None


def check_package(where: str) -> None:
    """Refuse a dataset of the hub without the package that reads it."""
    found = find_spec("datasets")
    # A folder of that name in the working folder is found too, but has no origin.
    if found is None or found.origin is None:
        raise PlumblineError(
            f"`{where}` is of kind '{HUB}', which needs plumbline's extra `hub`; install it with `pip install "
            "'datasets>=4'`."
        )
