"""What is wrong with the rows of own data, found before any job by reading them without tokenization."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from plumbline.config.own_data import FOLDER, HUB, OWN
from plumbline.config.resolved import Resolved
from plumbline.data.datasets.folder import list_images
from plumbline.data.datasets.hub import hub_rows
from plumbline.data.datasets.table import table_rows
from plumbline.data.own_texts import TextOptions, select_rows
from plumbline.data.tabular import TableFile
from plumbline.errors import PlumblineError


def check_rows(resolved: Resolved, dataset: str) -> None:
    """Refuse own data with unreadable rows, or without the classes and splits of a study; other data is not read."""
    kind = resolved.declarations["dataset", dataset].name
    if kind not in OWN:
        return
    try:
        _read(kind, resolved.options["dataset", dataset], resolved.preparations[dataset].seed)
    except PlumblineError as error:
        raise PlumblineError(f"`datasets.{dataset}`: {error}") from None


def _read(kind: str, options: Mapping[str, Any], seed: int) -> None:
    if kind == FOLDER:
        list_images(Path(options["path"]), seed, options["shares"], options["dev_share"], options["stratified"])
        return
    text_options = TextOptions(**{field.name: options[field.name] for field in fields(TextOptions)})
    if kind == HUB:
        revision, splits = options["revision"], options["splits"]
        rows, order = hub_rows(options["name"], options["config"], revision, splits, text_options)
        select_rows(rows, text_options, seed, order)
        return
    table = TableFile("", *(options[key] for key in ("format", "separator", "encoding", "quotes")))
    select_rows(table_rows(options["path"], table, text_options), text_options, seed)
