"""The user's own data without code: datasets of the kinds `table`, `hub` and `folder`.

Nothing here reads a file, because every job reads the config.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from plumbline.config.resolved import Resolved
from plumbline.errors import PlumblineError, nearest
from plumbline.registry import IMAGES, PAIRED

# Registered names.
TABLE, HUB, FOLDER = "table", "hub", "folder"
OWN = (TABLE, HUB, FOLDER)
# The names that files, columns and folders give to splits.
SPLIT_NAMES = {
    "train": ("train", "training"),
    "dev": ("dev", "development", "val", "valid", "validation"),
    "test": ("test", "testing"),
}
# Formats of tables, by the ending of a file.
FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}
# The task of two texts, unless another is stated.
INFERENCE = "inference"
SHARES = {"train": 0.8, "dev": 0.1, "test": 0.1}
_COMMIT = re.compile(r"[0-9a-f]{40}")
_WHOLE = re.compile(r"(-?\d+)\.0+")


def split_of(name: str) -> str:
    """The split that a name such as `validation` means, or an empty string."""
    return next((split for split, names in SPLIT_NAMES.items() if name.strip().lower() in names), "")


def split_list() -> str:
    """All names of splits, for messages."""
    return "; ".join(", ".join(names) for names in SPLIT_NAMES.values())


def label_text(label: object) -> str:
    """A raw label as text, empty if it is missing: 4.0 is '4', and true is 'true'."""
    if isinstance(label, bool):
        return str(label).lower()
    text = "" if label is None or label != label else str(label).strip()
    return whole[1] if (whole := _WHOLE.fullmatch(text)) else text


def format_of(path: str, stated: str) -> str:
    """The format of a file: the stated one, or with `auto` that of its ending; empty if unknown."""
    return stated if stated != "auto" else FORMATS.get(Path(path).suffix.lower(), "")


def own_paths(kind: str, options: Mapping[str, Any]) -> list[str]:
    """The files and folders of the user that a dataset of one of these kinds reads."""
    if kind == HUB:
        return [options["name"]] if os.path.isdir(options["name"]) else []
    path = options["path"]
    return list(path.values()) if isinstance(path, dict) else [path]


def split_paths(path: str | Mapping[str, str]) -> list[tuple[str, str]]:
    """Each file with its split, in the order of splits; the split of a single file is an empty string."""
    if isinstance(path, str):
        return [("", path)]
    return sorted(((split_of(name), file) for name, file in path.items()), key=lambda item: [*SHARES].index(item[0]))


def refine_own(resolved: Resolved) -> None:
    """Check the options of own datasets, and derive the task and the evidence that their declarations leave open."""
    for name in resolved.study.datasets:
        declaration, where = resolved.declarations["dataset", name], f"datasets.{name}"
        if declaration.name not in OWN:
            continue
        options = resolved.options["dataset", name]
        _check_splits(where, options)
        _check_classes(where, options.get("classes"))
        if options.get("answers") and options["classes"] is not None:
            raise PlumblineError(f"`{where}.answers` makes all answers classes; remove `{where}.classes`.")
        facts = {"task": IMAGES}
        if declaration.name == TABLE:
            _check_files(where, options)
        if declaration.name == HUB:
            _check_revision(where, options)
        if declaration.name != FOLDER:
            facts = {"task": _task(where, options), "evidence": options["evidence"] and options["evidence_source"]}
        resolved.declarations["dataset", name] = replace(declaration, facts=declaration.facts | facts)


def _task(where: str, options: Mapping[str, Any]) -> str:
    """The stated task; by default classification, and inference with a second text."""
    default = INFERENCE if options["pair"] else "classification"
    task = default if options["task"] == "auto" else str(options["task"])
    if (task in PAIRED) != bool(options["pair"]):
        advice = "name the column of the second text" if task in PAIRED else f"remove it, or set `task` to {INFERENCE}"
        raise PlumblineError(f"`{where}.task` is '{task}' and `{where}.pair` is '{options['pair']}'; {advice}.")
    return task


def _check_splits(where: str, options: Mapping[str, Any]) -> None:
    """Splits come from files or tables, from a column or from a draw, and from one of them only."""
    dev_share = options.get("dev_share")
    stated = {
        f"`{where}.path` has a file for each split": isinstance(options.get("path"), dict),
        f"`{where}.splits` names a table for each split": bool(options.get("splits")),
        f"`{where}.split` names a column": bool(options.get("split")),
        f"`{where}.shares` draws all splits": options.get("shares") is not None,
    }
    given = [sentence for sentence, is_stated in stated.items() if is_stated]
    if dev_share and options.get("shares") is not None:
        given.insert(0, f"`{where}.dev_share` draws dev from train")
    if len(given) > 1:
        raise PlumblineError(f"{given[0]} and {given[1]}; remove one.")
    if options.get("shares") is not None:
        _check_shares(f"{where}.shares", options["shares"])
    for key in ("path", "splits"):
        if isinstance(options.get(key), dict):
            _check_names(f"{where}.{key}", options[key], [] if dev_share else ["dev"])


def _check_shares(where: str, shares: Mapping[str, float]) -> None:
    _check_names(where, shares, ["dev"])
    if min(shares.values()) <= 0 or abs(sum(shares.values()) - 1) > 1e-6:
        written = ", ".join(f"{name}: {share:g}" for name, share in shares.items())
        raise PlumblineError(f"`{where}` is {{{written}}}; write positive shares that sum to 1.")


def _check_names(where: str, named: Mapping[str, Any], also: Sequence[str]) -> None:
    """Refuse unknown, repeated and missing splits; train and test are always needed."""
    splits = {name: split_of(name) for name in named}
    for name, split in splits.items():
        if not split:
            raise PlumblineError(
                f"`{where}` names the split '{name}', which does not exist; {nearest(name, _all_names())}"
            )
        if list(splits.values()).count(split) > 1:
            raise PlumblineError(f"`{where}` names the split '{split}' twice; remove one.")
    for split in ("train", *also, "test"):
        if split not in splits.values():
            remedy = (
                ", or set `dev_share` to draw it from train" if split == "dev" and not where.endswith("shares") else ""
            )
            raise PlumblineError(f"`{where}` has no split '{split}'; add it{remedy}.")


def _all_names() -> list[str]:
    return [name for names in SPLIT_NAMES.values() for name in names]


def _check_classes(where: str, classes: Mapping[str, str] | Iterable[str] | None) -> None:
    names = list(classes.values()) if isinstance(classes, dict) else list(classes or [])
    if classes is not None and len(set(names)) < 2:
        raise PlumblineError(
            f"`{where}.classes` names {len(set(names))} classes; write two or more, such as "
            "{'1': negative, '5': positive} or [bad, good]."
        )
    if isinstance(classes, list) and len(set(names)) < len(names):
        raise PlumblineError(f"`{where}.classes` lists a label twice; remove one.")


def _check_files(where: str, options: Mapping[str, Any]) -> None:
    """Refuse unknown endings, encodings and separators."""
    for path in own_paths(TABLE, options):
        if not format_of(path, options["format"]):
            raise PlumblineError(
                f"`{where}.path` is '{path}', which does not end in one of {', '.join(FORMATS)}; convert the file, or "
                f"set `{where}.format` to csv, tsv, jsonl or parquet."
            )
    try:
        "".encode(options["encoding"])
    except LookupError:
        raise PlumblineError(
            f"`{where}.encoding` is '{options['encoding']}', which Python does not know; write an encoding such as "
            "utf-8, cp1252 or latin-1."
        ) from None
    if len(options["separator"]) > 1:
        raise PlumblineError(f"`{where}.separator` is '{options['separator']}'; write one character.")


def _check_revision(where: str, options: Mapping[str, Any]) -> None:
    """A dataset of the hub is pinned to a commit; a local folder has none."""
    name, revision = options["name"], options["revision"]
    if os.path.isdir(name):
        if revision:
            raise PlumblineError(f"`{where}.revision` is '{revision}', but '{name}' is a folder; remove it.")
    elif not _COMMIT.fullmatch(revision):
        given = f"is '{revision}'" if revision else "is missing"
        raise PlumblineError(
            f"`{where}.revision` {given}; write the commit hash of '{name}', 40 hexadecimal digits, so that the data "
            "stays the same: its page lists them under 'Files and versions', 'History'."
        )
