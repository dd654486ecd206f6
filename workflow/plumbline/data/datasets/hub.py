"""Texts of a dataset of the Hugging Face hub, or of a local folder in the hub's format."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from plumbline.config.own_data import label_text, split_list, split_of
from plumbline.data.corpus import Corpus
from plumbline.data.own_texts import TextOptions, read_corpus
from plumbline.data.tabular import Row, missing_column
from plumbline.errors import PlumblineError, nearest
from plumbline.registry import dataset
from plumbline.runtime.progress import shown
from plumbline.runtime.provenance import content_hash

OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")


@dataset(
    "hub",
    source="the Hugging Face hub",
    licence="that of the dataset's page",
    required=["name", "text", "label"],
    limits={"dev_share": [0, 0.9]},
)
def hub(
    raw: Path,
    seed: int,
    *,
    name: str = "",
    config: str = "",
    revision: str = "",
    splits: dict[str, str] | None = None,
    options: TextOptions = TextOptions(),
) -> Corpus:
    """Texts of a dataset of the Hugging Face hub at a fixed `revision`, or of a local folder in the hub's format
    (page *Own data*).

    Options:
        name: Name on the hub, `OWNER/NAME`, or a local folder.
        config: Configuration of the dataset, if it has several.
        revision: Commit of the dataset, 40 digits, which a name on the hub needs.
        splits: Split of the dataset that is read as each of train, dev and test; by default those with these names.
    """
    rows, order = hub_rows(name, config, revision, splits, options)
    return read_corpus(shown(rows, "read", "row"), options, seed, order)


def hub_rows(
    name: str, config: str, revision: str, splits: Mapping[str, str] | None, options: TextOptions
) -> tuple[Iterator[Row], list[str]]:
    """The rows of all splits, and the classes in the order that the dataset declares, if it does."""
    loaded = _load(name, config, revision)
    tables = _named_splits(loaded, name, splits) if splits else _splits(loaded, name, options)
    for table in tables.values():
        for column in options.columns:
            if fault := missing_column(column, table.column_names):
                raise PlumblineError(f"'{name}' {fault}")
    feature = next(iter(tables.values())).features[options.label]
    classes = list(getattr(feature, "names", None) or [])
    return _rows(tables, name, options, classes), [label_text(class_) for class_ in classes]


def _load(name: str, config: str, revision: str) -> Any:
    """The dataset, from the cache if it is there; the sentences of the package are kept as the reason."""
    import datasets

    # The package may not see that a file of a local folder has changed, so each content has a cache of its own.
    cache = Path(datasets.config.HF_DATASETS_CACHE, "plumbline", content_hash(name)) if os.path.isdir(name) else None
    try:
        return datasets.load_dataset(
            name, config or None, revision=revision or None, cache_dir=str(cache) if cache else None
        )
    # The package raises its own exceptions, those of the hub, and those of each format.
    except Exception as error:
        offline = [
            variable for variable in OFFLINE if os.environ.get(variable, "0").upper() in ("1", "TRUE", "YES", "ON")
        ]
        remedy = "check `name`, `config` and `revision`, and that the hub can be reached"
        if offline and not os.path.isdir(name):
            remedy = f"{offline[0]} is set, but the dataset is not in the cache; load it once with a network connection"
        reason = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise PlumblineError(f"The dataset '{name}' cannot be loaded ({reason}); {remedy}.") from error


def _splits(loaded: Any, name: str, options: TextOptions) -> dict[str, Any]:
    """The tables of train, dev and test; a dataset with one table, or with a column of splits, has that of ''."""
    if options.split or options.shares is not None or len(loaded) == 1:
        if len(loaded) > 1:
            given = "`split` names a column" if options.split else "`shares` draws splits"
            raise PlumblineError(f"{given}, but '{name}' has the splits {', '.join(loaded)}; remove it.")
        return {"": next(iter(loaded.values()))}
    tables = {split_of(key): table for key, table in loaded.items() if split_of(key)}
    if "train" not in tables:
        raise PlumblineError(
            f"'{name}' has the splits {', '.join(loaded)}, none of which is train; name them with `splits`, or use the "
            f"names {split_list()}."
        )
    return tables


def _named_splits(loaded: Any, name: str, splits: Mapping[str, str]) -> dict[str, Any]:
    """The tables that the config names for each split."""
    for theirs in splits.values():
        if theirs not in loaded:
            raise PlumblineError(f"`splits` names '{theirs}', which '{name}' does not have; {nearest(theirs, loaded)}")
    return {split_of(ours): loaded[theirs] for ours, theirs in splits.items()}


def _rows(tables: dict[str, Any], name: str, options: TextOptions, classes: list[str]) -> Iterator[Row]:
    for split, table in tables.items():
        for number, values in enumerate(table.select_columns(options.columns), 1):
            label = values[options.label]
            if classes and isinstance(label, int):
                # The hub marks a missing label by -1.
                values[options.label] = classes[label] if label >= 0 else None
            yield Row(values, name, number, f"split '{split}', row" if split else "row", split)
