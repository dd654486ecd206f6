"""Raw files that the user has yet to supply. Used while the Snakefile is parsed for a plan, so it imports nothing
heavy."""

from pathlib import Path

from plumbline.config.resolved import Resolved
from plumbline.data.raw import FETCHED, MADE, downloads, raw_files, vector_file


def absent_files(resolved: Resolved, raw: Path) -> list[str]:
    """The files that a study reads, that do not exist and that no rule downloads or makes, each once."""
    outputs = {*FETCHED, *MADE, *(path for _, paths in downloads(resolved, raw) for path in paths)}
    made = {str(raw / path) for path in outputs}
    inputs = [
        path
        for dataset in resolved.study.datasets
        for path in [*raw_files(resolved, dataset, raw), *vector_file(resolved, dataset, raw)]
    ]
    return [path for path in dict.fromkeys(inputs) if path not in made and not Path(path).exists()]
