"""The config of a study that goes on where an evaluation ends, with the files that it names next to it."""

import json
import shutil
from collections.abc import Mapping
from os.path import abspath, isdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from plumbline.api.checkpoint import Checkpoint
from plumbline.api.config import DATASET, MODEL, dataset_entry
from plumbline.api.texts import EXPLAINED, LabelledTexts
from plumbline.config.external import IMPORTED, locate_files
from plumbline.config.resolve import resolve
from plumbline.config.runs import list_runs
from plumbline.data.own_rows import check_rows
from plumbline.data.own_splits import assign_splits, check_every_class
from plumbline.errors import PlumblineError
from plumbline.store import write_text

# The name of the fine-tuned model.
RETRAINED = "retrained"
# The measure that ROAR compares others with, and percentages of masked words.
BASELINE, LEVELS = "random", [20, 40, 60, 80]
# The share of the training texts that becomes dev.
DEV_SHARE = 0.1
Entry = dict[str, Any]


def write_config(
    path: Path, config: Mapping[str, Any], model: Checkpoint, texts: LabelledTexts, training: LabelledTexts | None
) -> Path:
    """Write a config of a study with the same model and texts, and ROAR of the fine-tuned model.

    The config is checked as `plumbline run` does, and nothing is overwritten.
    """
    if path.suffix not in (".yaml", ".yml"):
        raise PlumblineError(f"'{path}' must end in .yaml.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent) as folder:
        staged = Path(folder) / path.name
        written = _study(staged, config, model, texts, training)
        _check(written, staged.parent, texts, training)
        write_text(staged, yaml.safe_dump(written, sort_keys=False, allow_unicode=True))
        files = sorted(staged.parent.iterdir())
        for file in files:
            if (path.parent / file.name).exists():
                raise PlumblineError(f"'{path.parent / file.name}' exists; remove it, or give the config another name.")
        for file in files:
            file.rename(path.parent / file.name)
    return path


def _study(
    path: Path, config: Mapping[str, Any], model: Checkpoint, texts: LabelledTexts, training: LabelledTexts | None
) -> Entry:
    """The config of the study; the files that it names are written next to it.

    Without training texts, splits are drawn from the evaluated ones, whose numbers, by which one's own importances are
    found, then change.
    """
    computed, own = _measures(config["measures"])
    own = {} if training is None else {name: _copied_importances(path, name, entry) for name, entry in own.items()}
    checkpoint = _copied_checkpoint(path, model)
    study = {
        **{key: value for key, value in config.items() if value not in ({}, [])},
        "datasets": {DATASET: _written_texts(path, texts, training)},
        "models": {MODEL: model.entry(checkpoint), RETRAINED: model.retrained_entry(checkpoint)},
        "measures": computed | own,
    }
    masking = {"levels": LEVELS, "models": [RETRAINED], "measures": [*computed]}
    return study | ({"roar": {"relative": masking}} if len(computed) > 1 else {})


def _measures(entries: Mapping[str, Entry]) -> tuple[dict[str, Entry], dict[str, Entry]]:
    """The measures that are computed, with a random one, and one's own importances."""
    computed = {name: entry for name, entry in entries.items() if entry.get("kind") != IMPORTED}
    if not any(entry.get("kind", name) == BASELINE for name, entry in computed.items()):
        computed = {BASELINE: {}, **computed}
    return computed, {name: entry for name, entry in entries.items() if name not in computed}


def _written_texts(path: Path, texts: LabelledTexts, training: LabelledTexts | None) -> Entry:
    """Write the texts next to a config, and return their entry."""
    entry = dataset_entry(texts, f"{path.stem}-texts.jsonl")
    if training is None:
        rows = [{key: value for key, value in row.items() if key != "split"} for row in texts.rows(EXPLAINED)]
    else:
        if (training.pairs is None) != (texts.pairs is None):
            raise PlumblineError("`texts` must be single texts or pairs, like the evaluated texts.")
        rows = [*training.rows("train"), *texts.rows(EXPLAINED)]
        entry |= {"split": "split", "dev_share": DEV_SHARE}
    write_text(path.parent / entry["path"], "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return entry


def _copied_importances(path: Path, name: str, entry: Entry) -> Entry:
    """Copy one's own importances next to a config, and return their entry."""
    copy = path.with_name(f"{path.stem}-{name}.parquet")
    shutil.copyfile(entry["path"], copy)
    return entry | {"path": copy.name}


def _copied_checkpoint(path: Path, model: Checkpoint) -> str:
    """The checkpoint as a config names it; a model that was in memory is copied next to the config."""
    if not model.in_memory:
        return abspath(model.checkpoint) if isdir(model.checkpoint) else model.checkpoint
    copy = path.with_name(f"{path.stem}-checkpoint")
    shutil.copytree(model.checkpoint, copy)
    return copy.name


def _check(written: Entry, folder: Path, texts: LabelledTexts, training: LabelledTexts | None) -> None:
    """Refuse what `plumbline run`, or the preparation of the texts, would refuse."""
    resolved = resolve(locate_files(dict(written), [folder]))
    list_runs(resolved)
    try:
        check_rows(resolved, DATASET)
        if training is not None:
            given = ["train"] * len(training.labels) + [EXPLAINED] * len(texts.labels)
            labels, seed = [*training.labels, *texts.labels], resolved.preparations[DATASET].seed
            splits, _ = assign_splits(given, labels, texts.classes, seed, None, DEV_SHARE, True)
            check_every_class(splits, labels, texts.classes)
    except PlumblineError as error:
        # Without the key of the config and the advice for its files.
        fault = str(error).removeprefix(f"`datasets.{DATASET}`: ").partition(";")[0].removesuffix(".")
        raise PlumblineError(f"{fault}: {_needed_texts(training is not None)}") from None


def _needed_texts(given: bool) -> str:
    """What the splits of the config are drawn from, and which arguments give the training texts."""
    if given:
        return (
            f"{DEV_SHARE:.0%} of the training `texts` become the dev split, the evaluated texts are the test split, "
            "and each split needs texts of every class; give more training texts."
        )
    return (
        "without training texts, the splits train, dev and test are drawn from the evaluated texts, and each needs "
        f"texts of every class; give training texts with `result.to_config(path, texts, labels)`. Then {DEV_SHARE:.0%} "
        "of them become the dev split, and the evaluated texts are the test split."
    )
