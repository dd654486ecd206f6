"""The instances of own data before any job: read without tokenization, to find faults and to count them."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from plumbline.config.own_data import FOLDER, HUB, OWN
from plumbline.config.resolved import Resolved
from plumbline.data.datasets.folder import list_images
from plumbline.data.datasets.hub import hub_rows
from plumbline.data.datasets.table import table_rows
from plumbline.data.own_texts import TextOptions, select_rows
from plumbline.data.tabular import Row, TableFile
from plumbline.errors import PlumblineError

# The split of an instance, and its words between white space; an image has none.
Instance = tuple[str, int]


def check_rows(resolved: Resolved, dataset: str) -> None:
    """Refuse own data with unreadable rows, or without the classes and splits of a study; other data is not read."""
    if resolved.declarations["dataset", dataset].name in OWN:
        try:
            own_instances(resolved, dataset)
        except PlumblineError as error:
            raise PlumblineError(f"`datasets.{dataset}`: {error}") from None


def own_instances(resolved: Resolved, dataset: str) -> list[Instance]:
    """The instances of a dataset of the kinds `table`, `hub` and `folder`."""
    kind, options = resolved.declarations["dataset", dataset].name, resolved.options["dataset", dataset]
    seed = resolved.preparations[dataset].seed
    if kind == FOLDER:
        draw = options["shares"], options["dev_share"], options["stratified"]
        return [(split, 0) for split, _, _ in list_images(Path(options["path"]), seed, *draw)[0]]
    text_options = TextOptions(**{field.name: options[field.name] for field in fields(TextOptions)})
    rows, order = _rows(kind, options, text_options)
    selected = select_rows(rows, text_options, seed, order)
    lengths = (len(item.text.split()) for item in selected.rows)
    return list(zip(selected.splits, lengths, strict=True))


def _rows(kind: str, options: Mapping[str, Any], text_options: TextOptions) -> tuple[Iterator[Row], list[str]]:
    """The rows of a table, and the classes that it declares, if any."""
    if kind == HUB:
        name, config, revision, splits = (options[key] for key in ("name", "config", "revision", "splits"))
        return hub_rows(name, config, revision, splits, text_options)
    table = TableFile("", *(options[key] for key in ("format", "separator", "encoding", "quotes")))
    return table_rows(options["path"], table, text_options), []
