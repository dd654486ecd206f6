"""Damaged files of a study: a job that reads one notes it, the run sets it aside at its end, and the next run
regenerates it.

The job must not move it: Snakemake would miss the file when it retries the job, and stop all others. Nor can the next
run: it would have to move it before it builds the DAG, and a dry run must move nothing.
"""

from pathlib import Path

ASIDE = ".damaged"
NOTES = Path("results/.damaged")


def note(path: Path) -> None:
    """Note a damaged file for the end of the run."""
    NOTES.parent.mkdir(exist_ok=True)
    with NOTES.open("a", encoding="utf-8") as file:
        file.write(f"{path}\n")


def set_aside(path: Path) -> Path:
    """Rename a file, so that the next run regenerates it."""
    return path.rename(f"{path}{ASIDE}")


def set_aside_noted() -> list[Path]:
    """Set aside all noted files that still exist."""
    if not NOTES.exists():
        return []
    noted = dict.fromkeys(Path(line) for line in NOTES.read_text(encoding="utf-8").splitlines())
    existing = [path for path in noted if path.exists()]
    for path in existing:
        set_aside(path)
    NOTES.unlink()
    return existing
