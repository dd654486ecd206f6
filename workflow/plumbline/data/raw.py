"""Which of the publishers' files a study reads. Asked while the Snakefile is parsed, so it imports nothing heavy."""

import os
from collections.abc import Iterator
from pathlib import Path

from plumbline.config.resolved import Resolved
from plumbline.data.publishers import Archive, archive_of
from plumbline.data.sources import missing_files
from plumbline.data.vector_file import missing_vectors
from plumbline.errors import PlumblineError
from plumbline.registry import holds

# What the rule fetch_vader brings by package name; other rules download archives, and the rest must lie there.
FETCHED = ["vader/movieReviewSnippets_GroundTruth.txt", "vader/vader_lexicon.txt"]
# What the rule mimic_vectors makes.
MADE = ["mimic3/discharge_summaries.300d.vec"]


def _needed(resolved: Resolved, dataset: str) -> Iterator[tuple[str, str]]:
    """The declared files that a dataset's options ask for; a key ``option=value:...`` counts only with that option, and
    ``{option}`` in a path stands for its value."""
    options = resolved.options["dataset", dataset]
    for key, path in resolved.declarations["dataset", dataset].files.items():
        if holds(key, options):
            yield key, path.format(**options)


def raw_files(resolved: Resolved, dataset: str, raw: Path) -> list[str]:
    """The files that a dataset is read from."""
    return [str(raw / path) for _, path in _needed(resolved, dataset)]


def vector_file(resolved: Resolved, dataset: str, raw: Path) -> list[str]:
    """The file of word vectors that a dataset's recipe names, if it names one."""
    embedding = resolved.preparations[dataset].embedding
    return [str(raw / embedding.path)] if embedding.kind == "file" else []


def _downloaded(path: str) -> Archive | None:
    """The archive that would bring a file, unless the variable PLUMBLINE_OFFLINE forbids it."""
    return archive_of(path) if os.environ.get("PLUMBLINE_OFFLINE", "0") in ("", "0") else None


def downloads(resolved: Resolved, raw: Path) -> list[tuple[Archive, list[str]]]:
    """The archives with a needed file that is not there, each with all its files that are not there."""
    paths: list[str] = []
    for dataset in resolved.study.datasets:
        embedding = resolved.preparations[dataset].embedding
        paths += [path for _, path in _needed(resolved, dataset)]
        paths += [embedding.path] if embedding.kind == "file" else []
    holding = [_downloaded(path) for path in paths if not os.path.exists(raw / path)]
    archives = {archive.name: archive for archive in holding if archive}
    return [(archive, archive.absent(raw)) for archive in archives.values()]


def check_raw(resolved: Resolved, raw: Path) -> None:
    """Refuse a study whose files are not there and do not come by themselves, before any work.

    The sentence says what is missing, where to get it and where to put it.
    """
    for dataset in resolved.study.datasets:
        declaration = resolved.declarations["dataset", dataset]
        files = {key: path for key, path in _needed(resolved, dataset) if path not in FETCHED and not _downloaded(path)}
        sentence = missing_files(dataset, files, raw, declaration.source)
        if sentence:
            raise PlumblineError(sentence)
        embedding = resolved.preparations[dataset].embedding
        by_hand = embedding.kind == "file" and embedding.path not in MADE and not _downloaded(embedding.path)
        lacking = missing_vectors(raw, embedding.path) if by_hand else None
        if lacking:
            raise PlumblineError(f"`datasets.{dataset}.preparation.embedding`: {lacking}")
