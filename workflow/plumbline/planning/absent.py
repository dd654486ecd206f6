"""Raw files that the user has yet to supply. Used while the Snakefile is parsed for a plan, so it imports nothing
heavy."""

from pathlib import Path

from plumbline.config.resolved import Resolved
from plumbline.data.raw import FETCHED, MADE, downloads, study_files


def absent_files(resolved: Resolved, raw: Path) -> list[str]:
    """The files that a study reads, that do not exist and that no rule downloads or makes, each once."""
    outputs = {*FETCHED, *MADE, *(path for _, paths in downloads(resolved, raw) for path in paths)}
    made = {str(raw / path) for path in outputs}
    return [path for path in study_files(resolved, raw) if path not in made and not Path(path).exists()]
