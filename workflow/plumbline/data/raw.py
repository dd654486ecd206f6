"""The published files that a study reads. Imported while the Snakefile is parsed, so it imports nothing heavy."""

import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from plumbline.config.own_data import OWN, own_paths
from plumbline.config.resolved import Resolved
from plumbline.data.own_files import check_own
from plumbline.data.publishers import Archive, archive_of
from plumbline.data.sources import missing_files
from plumbline.data.vector_file import missing_vectors
from plumbline.errors import PlumblineError
from plumbline.registry import holds

# Written by the rule fetch_vader; other rules download archives, and all other files must exist.
FETCHED = ["vader/movieReviewSnippets_GroundTruth.txt", "vader/vader_lexicon.txt"]
# Written by the rule mimic_vectors.
MADE = ["mimic3/discharge_summaries.300d.vec"]


def _needed(resolved: Resolved, dataset: str) -> Iterator[tuple[str, str]]:
    """The declared files that a dataset's options require: a key ``option=value:...`` applies with that value only,
    and ``{option}`` in a path is replaced by the value."""
    options = resolved.options["dataset", dataset]
    for key, path in resolved.declarations["dataset", dataset].files.items():
        if holds(key, options):
            yield key, path.format(**options)


def raw_files(resolved: Resolved, dataset: str, raw: Path) -> list[str]:
    """The files that a dataset is read from; own data lies where the config says."""
    kind = resolved.declarations["dataset", dataset].name
    if kind in OWN:
        return own_paths(kind, resolved.options["dataset", dataset])
    return [str(raw / path) for _, path in _needed(resolved, dataset)]


def vector_file(resolved: Resolved, dataset: str, raw: Path) -> list[str]:
    """The file of word vectors in a dataset's recipe, if any."""
    embedding = resolved.preparations[dataset].embedding
    return [str(raw / embedding.path)] if embedding.kind == "file" else []


def study_files(resolved: Resolved, raw: Path) -> list[str]:
    """The files of all datasets of a study and of their word vectors, each once."""
    files = [(*raw_files(resolved, name, raw), *vector_file(resolved, name, raw)) for name in resolved.study.datasets]
    return list(dict.fromkeys(chain.from_iterable(files)))


def _downloadable(path: str) -> Archive | None:
    """The archive that holds a file, unless the variable PLUMBLINE_OFFLINE is set."""
    return archive_of(path) if os.environ.get("PLUMBLINE_OFFLINE", "0") in ("", "0") else None


def downloads(resolved: Resolved, raw: Path) -> list[tuple[Archive, list[str]]]:
    """The archives that hold a missing file, each with all its missing files."""
    paths = study_files(resolved, Path())
    candidates = [_downloadable(path) for path in paths if not os.path.exists(raw / path)]
    archives = {archive.name: archive for archive in candidates if archive}
    return [(archive, archive.missing(raw)) for archive in archives.values()]


def check_raw(resolved: Resolved, raw: Path) -> None:
    """Refuse, before any work, a study with missing files that no rule makes; the message names source and target."""
    for dataset in resolved.study.datasets:
        declaration = resolved.declarations["dataset", dataset]
        check_own(f"datasets.{dataset}", declaration.name, resolved.options["dataset", dataset])
        needed = _needed(resolved, dataset)
        files = {key: path for key, path in needed if path not in FETCHED and not _downloadable(path)}
        if message := missing_files(dataset, files, raw, declaration.source):
            raise PlumblineError(message)
        embedding = resolved.preparations[dataset].embedding
        by_hand = embedding.kind == "file" and embedding.path not in MADE and not _downloadable(embedding.path)
        if by_hand and (message := missing_vectors(raw, embedding.path)):
            raise PlumblineError(f"`datasets.{dataset}.preparation.embedding`: {message}")
