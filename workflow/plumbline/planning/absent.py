"""The publishers' files that a person has yet to bring. Asked while the Snakefile is parsed for a plan, so it imports
nothing heavy."""

from pathlib import Path

from plumbline.config.resolved import Resolved
from plumbline.data.raw import FETCHED, MADE, downloads, raw_files, vector_file


def absent_files(resolved: Resolved, raw: Path) -> list[str]:
    """The files that a study reads, that are not there and that no rule brings or makes, each once."""
    coming = {*FETCHED, *MADE, *(path for _, paths in downloads(resolved, raw) for path in paths)}
    ours = {str(raw / path) for path in coming}
    wanted = [
        path
        for dataset in resolved.study.datasets
        for path in [*raw_files(resolved, dataset, raw), *vector_file(resolved, dataset, raw)]
    ]
    return [path for path in dict.fromkeys(wanted) if path not in ours and not Path(path).exists()]
