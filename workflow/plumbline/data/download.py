"""Downloading a published archive into the raw folder: taken up where it broke off, checked, and put in place whole."""

import fcntl
import gzip
import hashlib
import http.client
import os
import shutil
import socket
import ssl
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from plumbline.data.publishers import Archive
from plumbline.errors import PlumblineError
from plumbline.runtime.progress import Progress
from plumbline.store import write_text

TIMEOUT = 60
# Seconds before each new try after a connection broke off; they begin anew whenever a try got further than all before.
PAUSES = (1, 4, 16)
CHUNK = 1 << 16
HEADERS = {"User-Agent": "plumbline"}
DAMAGES = (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError)
# Trying again does not help against these.
HOPELESS = (socket.gaierror, ConnectionRefusedError, ssl.SSLCertVerificationError)


class _Failed(Exception):
    """Why a mirror is given up, in a few words."""


class _Broken(Exception):
    """Why a connection broke off, in a few words."""


def download(archive: Archive, raw: Path) -> None:
    """Put those files of an archive below `raw` that are not there; what is there is not touched."""
    reasons = []
    try:
        raw.mkdir(parents=True, exist_ok=True)
        for source in archive.sources():
            part = raw / f"{source.name}.part"
            with _held(part):
                absent = archive.absent(raw)
                for url in source.urls if absent else ():
                    try:
                        _obtain(source, url, part, absent, raw)
                        break
                    except _Failed as failure:
                        reasons.append(f"{urlsplit(url).netloc}: {failure}")
            if not archive.absent(raw):
                return
    except OSError as error:
        raise PlumblineError(
            f"The archive '{archive.name}' cannot be put into the folder '{raw}': {_said(error)}."
        ) from error
    absent = archive.absent(raw)
    named = " and ".join(", ".join(f"'{path}'" for path in part) for part in (absent[:-1], absent[-1:]) if part)
    raise PlumblineError(
        f"The archive '{archive.name}' could not be downloaded ({'; '.join(reasons)}): run again later, or get "
        f"{archive.urls[0]} by other means and put {named} into the folder '{raw}'."
    )


@contextmanager
def _held(part: Path) -> Iterator[None]:
    """Have a partial file for this process alone; a run that downloads the same is waited for."""
    while True:
        with part.open("ab") as file:
            with suppress(OSError):  # Some shared file systems have no locks.
                fcntl.flock(file, fcntl.LOCK_EX)
            if not _is(part, file):  # Whoever was waited for has removed it.
                continue
            try:
                yield
            finally:
                if part.exists() and not part.stat().st_size:
                    part.unlink()
            return


def _is(path: Path, file: IO[bytes]) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _obtain(source: Archive, url: str, part: Path, absent: Sequence[str], raw: Path) -> None:
    """Fetch an archive from one mirror, check it and put what is absent in place."""
    resumed = part.stat().st_size > 0
    _fetch(source, url, part)
    try:
        seen = _check(source, part, raw)
        _unpack(source, part, absent, raw, seen)
    except _Failed:
        os.truncate(part, 0)
        if not resumed:
            raise
        # What was there before may have been wrong.
        _obtain(source, url, part, absent, raw)
        return
    part.unlink(missing_ok=True)


def _fetch(source: Archive, url: str, part: Path) -> None:
    """Bring the whole file, after what `part` holds of it."""
    furthest, failures = part.stat().st_size, 0
    while True:
        try:
            _receive(source, url, part)
            return
        except _Broken as broken:
            if part.stat().st_size > furthest:
                furthest, failures = part.stat().st_size, 0
            if failures == len(PAUSES):
                raise _Failed(str(broken)) from None
            time.sleep(PAUSES[failures])
            failures += 1


def _receive(source: Archive, url: str, part: Path) -> None:
    """Write what one request brings; a server that knows no ranges sends all from the start."""
    held = part.stat().st_size
    try:
        response = urlopen(
            Request(url, headers=HEADERS | ({"Range": f"bytes={held}-"} if held else {})), timeout=TIMEOUT
        )
    except HTTPError as error:
        error.close()
        if error.code == 416 and held:
            if error.headers.get("Content-Range") != f"bytes */{held}":
                os.truncate(part, 0)
                _receive(source, url, part)
            return
        if error.code in (408, 429) or error.code >= 500:
            raise _Broken(f"HTTP {error.code}") from None
        raise _Failed(f"HTTP {error.code}") from None
    except (OSError, http.client.HTTPException) as error:
        cause = error.reason if isinstance(error, URLError) else error
        raise (_Failed if isinstance(cause, HOPELESS) else _Broken)(_said(cause)) from None
    with response:
        start = held if response.status == 206 else 0
        if response.status not in (200, 206) or (start and not _begins(response, start)):
            raise _Failed(f"HTTP {response.status}, which is not what was asked for")
        length = response.headers.get("Content-Length")
        total = start + int(length) if length else source.size
        with part.open("r+b") as file, Progress(total, source.name, "byte", start) as progress:
            file.truncate(start)
            file.seek(start)
            while chunk := _chunk(response):
                file.write(chunk)
                progress.update(len(chunk))
    if total is not None and part.stat().st_size < total:
        raise _Broken(f"the connection broke off after {part.stat().st_size} of {total} bytes")


def _begins(response: http.client.HTTPResponse, start: int) -> bool:
    return (response.headers.get("Content-Range") or "").startswith(f"bytes {start}-")


def _chunk(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read1(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(_said(error)) from None


def _said(error: object) -> str:
    """An error's own words, for the middle of a sentence."""
    words = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return words.rstrip(".")


def _record(source: Archive, raw: Path) -> Path:
    """Where the sha256 of an archive's first download stands, in the form that `sha256sum` writes."""
    return raw / PurePosixPath(next(iter(source.files))).parts[0] / f"{source.name}.sha256"


def _check(source: Archive, part: Path, raw: Path) -> str:
    """Compare the checksum, with the first download's where none is published; the sha256 if it is the first."""
    record = _record(source, raw)
    algorithm, _, digest = source.checksum.partition(":")
    if not digest:
        algorithm, digest = "sha256", record.read_text("utf-8").split()[0] if record.exists() else ""
    with part.open("rb") as file:
        seen = hashlib.file_digest(file, partial(hashlib.new, algorithm, usedforsecurity=False)).hexdigest()
    if digest and seen != digest.lower():
        right = "the published one" if source.checksum else f"that of the first download, in '{record}'"
        raise _Failed(f"its {algorithm} is not {right}")
    return "" if digest else seen


def _unpack(source: Archive, part: Path, absent: Sequence[str], raw: Path, seen: str) -> None:
    """Unpack under temporary names, then rename all."""
    with TemporaryDirectory(dir=raw, prefix=f".{source.name}.") as folder:
        fresh = {path: Path(folder, str(number)) for number, path in enumerate(absent)}
        try:
            _extract(source, part, fresh)
        except DAMAGES:
            raise _Failed("the archive is damaged") from None
        for path, file in fresh.items():
            if not file.exists():
                raise _Failed(f"the archive does not hold '{source.files[path]}'")
        if seen:
            write_text(_record(source, raw), f"{seen}  {PurePosixPath(urlsplit(source.urls[0]).path).name}\n")
        for path, file in fresh.items():
            (raw / path).parent.mkdir(parents=True, exist_ok=True)
            file.rename(raw / path)


def _extract(source: Archive, part: Path, fresh: Mapping[str, Path]) -> None:
    for path, target in fresh.items():
        if not source.files[path]:
            part.rename(target)
            return
    for name, open_ in _members(part):
        place = _place(PurePosixPath(name), source, fresh)
        if place:
            place.parent.mkdir(parents=True, exist_ok=True)
            with open_() as packed, place.open("wb") as file:
                shutil.copyfileobj(packed, file)


def _members(part: Path) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    """The regular files of a zip or tar archive, each with what opens it."""
    with part.open("rb") as file:
        zipped = file.read(4) == b"PK\x03\x04"
    if zipped:
        with zipfile.ZipFile(part) as pack:
            for info in pack.infolist():
                if not info.is_dir():
                    yield info.filename, partial(pack.open, info)
        return
    with tarfile.open(part) as tar:
        for member in tar:
            if member.isreg():
                yield member.name, partial(_open, tar, member)


def _open(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(member)
    assert file
    return file


def _place(name: PurePosixPath, source: Archive, fresh: Mapping[str, Path]) -> Path | None:
    """Where a member goes, if it is wanted: our own name for a file, and a name below our own for one of a folder."""
    for path, target in fresh.items():
        member = source.files[path]
        if str(name) == member:
            return target
        if source.is_folder(path) and str(name).startswith(member):
            if ".." in name.parts:
                raise _Failed(f"the archive's path '{name}' leads outside its folder")
            return target / name.relative_to(member)
    return None
