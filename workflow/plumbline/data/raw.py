"""Which of the publishers' files a study reads. Asked while the Snakefile is parsed, so it imports nothing heavy."""

from collections.abc import Iterator
from pathlib import Path

from plumbline.config.study import Resolved
from plumbline.data.sources import missing_files
from plumbline.data.vector_file import missing_vectors
from plumbline.errors import PlumblineError
from plumbline.registry import holds

# What the rule fetch_vader brings by package name; anything else must lie under the raw folder.
FETCHED = ["vader/movieReviewSnippets_GroundTruth.txt", "vader/vader_lexicon.txt"]


def _needed(resolved: Resolved, dataset: str) -> Iterator[tuple[str, str]]:
    """The declared files that a dataset's options ask for; a key ``option=value:...`` counts only with that option."""
    options = resolved.options["dataset", dataset]
    for key, path in resolved.declarations["dataset", dataset].files.items():
        if holds(key, options):
            yield key, path


def raw_files(resolved: Resolved, dataset: str, raw: Path) -> list[str]:
    """The files that a dataset is read from."""
    return [str(raw / path) for _, path in _needed(resolved, dataset)]


def vectors_of(resolved: Resolved, dataset: str, raw: Path) -> list[str]:
    """The file of word vectors that a dataset's recipe names, if it names one."""
    embedding = resolved.preparations[dataset].embedding
    return [str(raw / embedding.path)] if embedding.kind == "file" else []


def check_raw(resolved: Resolved, raw: Path) -> None:
    """Refuse a study whose files are not there, before any work: what is missing, where to get it, where to put it."""
    for dataset in resolved.study.datasets:
        declaration = resolved.declarations["dataset", dataset]
        files = {key: path for key, path in _needed(resolved, dataset) if path not in FETCHED}
        sentence = missing_files(dataset, files, raw, declaration.source)
        if sentence:
            raise PlumblineError(sentence)
        embedding = resolved.preparations[dataset].embedding
        lacking = missing_vectors(raw, embedding.path) if embedding.kind == "file" else None
        if lacking:
            raise PlumblineError(f"`datasets.{dataset}.preparation.embedding`: {lacking}")
