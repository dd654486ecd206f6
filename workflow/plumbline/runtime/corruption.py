"""Damaged files of a study: a job that trips over one notes it, at its end the run sets it aside, and the next makes it
anew.

Not the job itself: Snakemake would miss the file when it tries the job again, and stop all others. Nor the next run: it
would have to before it knows what there is to do, and a dry run must move nothing.
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
    """Rename a file, so that it is missing and will be made."""
    return path.rename(f"{path}{ASIDE}")


def set_aside_noted() -> list[Path]:
    """Set aside all files that were noted; those that are gone are nobody's concern any more."""
    if not NOTES.exists():
        return []
    noted = dict.fromkeys(Path(line) for line in NOTES.read_text(encoding="utf-8").splitlines())
    found = [path for path in noted if path.exists()]
    for path in found:
        set_aside(path)
    NOTES.unlink()
    return found
