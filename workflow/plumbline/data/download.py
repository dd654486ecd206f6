"""Download a published archive into the raw folder: resumed, checksummed, and moved into place when complete."""

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
from plumbline.data.sources import join_paths
from plumbline.errors import PlumblineError
from plumbline.runtime.progress import Progress
from plumbline.store import write_text

TIMEOUT = 60
# Seconds before each retry of a lost connection; they restart whenever an attempt gets further than all before.
PAUSES = (1, 4, 16)
CHUNK = 1 << 16
HEADERS = {"User-Agent": "plumbline"}
ARCHIVE_ERRORS = (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError)
# Errors for which a retry is pointless.
PERMANENT_ERRORS = (socket.gaierror, ConnectionRefusedError, ssl.SSLCertVerificationError)


class _MirrorFailed(Exception):
    """The mirror cannot provide the archive; the message is the reason."""


class _ConnectionLost(Exception):
    """The connection was lost and may be retried; the message is the reason."""


def download(archive: Archive, raw: Path) -> None:
    """Write the missing files of an archive below `raw`; existing files are not changed."""
    reasons = []
    try:
        raw.mkdir(parents=True, exist_ok=True)
        for source in archive.sources():
            part = raw / f"{source.name}.part"
            with _locked(part):
                missing = archive.missing(raw)
                for url in source.urls if missing else ():
                    try:
                        _obtain(source, url, part, missing, raw)
                        break
                    except _MirrorFailed as failure:
                        reasons.append(f"{urlsplit(url).netloc}: {failure}")
            if not archive.missing(raw):
                return
    except OSError as error:
        raise PlumblineError(
            f"The archive '{archive.name}' cannot be written to the folder '{raw}': {_reason(error)}."
        ) from error
    raise PlumblineError(
        f"The archive '{archive.name}' could not be downloaded ({'; '.join(reasons)}): run again later, or download "
        f"{archive.urls[0]} in another way and put {join_paths(archive.missing(raw))} into the folder '{raw}'."
    )


@contextmanager
def _locked(part: Path) -> Iterator[None]:
    """Lock a partial file; waits for another process that downloads the same archive."""
    while True:
        with part.open("ab") as file:
            with suppress(OSError):  # Some shared file systems have no locks.
                fcntl.flock(file, fcntl.LOCK_EX)
            if not _same_file(part, file):  # The other process has removed it.
                continue
            try:
                yield
            finally:
                if part.exists() and not part.stat().st_size:
                    part.unlink()
            return


def _same_file(path: Path, file: IO[bytes]) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _obtain(source: Archive, url: str, part: Path, missing: Sequence[str], raw: Path) -> None:
    """Download an archive from one mirror, verify it and unpack the missing files."""
    resumed = part.stat().st_size > 0
    _fetch(source, url, part)
    try:
        first_digest = _check(source, part, raw)
        _unpack(source, part, missing, raw, first_digest)
    except _MirrorFailed:
        os.truncate(part, 0)
        if not resumed:
            raise
        # The part from an earlier download may have been wrong.
        _obtain(source, url, part, missing, raw)
        return
    part.unlink(missing_ok=True)


def _fetch(source: Archive, url: str, part: Path) -> None:
    """Download the rest of a file after its `part`, with retries."""
    furthest, failures = part.stat().st_size, 0
    while True:
        try:
            _receive(source, url, part)
            return
        except _ConnectionLost as error:
            if part.stat().st_size > furthest:
                furthest, failures = part.stat().st_size, 0
            if failures == len(PAUSES):
                raise _MirrorFailed(str(error)) from None
            time.sleep(PAUSES[failures])
            failures += 1


def _receive(source: Archive, url: str, part: Path) -> None:
    """Write the response of one request; a server without range requests sends the whole file."""
    held = part.stat().st_size
    headers = HEADERS | ({"Range": f"bytes={held}-"} if held else {})
    try:
        response = urlopen(Request(url, headers=headers), timeout=TIMEOUT)
    except HTTPError as error:
        error.close()
        if error.code == 416 and held:
            if error.headers.get("Content-Range") != f"bytes */{held}":
                os.truncate(part, 0)
                _receive(source, url, part)
            return
        if error.code in (408, 429) or error.code >= 500:
            raise _ConnectionLost(f"HTTP {error.code}") from None
        raise _MirrorFailed(f"HTTP {error.code}") from None
    except (OSError, http.client.HTTPException) as error:
        cause = error.reason if isinstance(error, URLError) else error
        raise (_MirrorFailed if isinstance(cause, PERMANENT_ERRORS) else _ConnectionLost)(_reason(cause)) from None
    with response:
        start = held if response.status == 206 else 0
        content_range = response.headers.get("Content-Range") or ""
        if response.status not in (200, 206) or (start and not content_range.startswith(f"bytes {start}-")):
            raise _MirrorFailed(f"HTTP {response.status}, which does not match the request")
        length = response.headers.get("Content-Length")
        total = start + int(length) if length else source.size
        with part.open("r+b") as file, Progress(total, source.name, "byte", start) as progress:
            file.truncate(start)
            file.seek(start)
            while chunk := _chunk(response):
                file.write(chunk)
                progress.update(len(chunk))
    if total is not None and part.stat().st_size < total:
        raise _ConnectionLost(f"the connection was lost after {part.stat().st_size} of {total} bytes")


def _chunk(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read1(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise _ConnectionLost(_reason(error)) from None


def _reason(error: object) -> str:
    """An error's message without its final full stop."""
    message = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return message.rstrip(".")


def _checksum_file(source: Archive, raw: Path) -> Path:
    """The file with the sha256 of an archive's first download, in the format of `sha256sum`."""
    return raw / PurePosixPath(next(iter(source.files))).parts[0] / f"{source.name}.sha256"


def _check(source: Archive, part: Path, raw: Path) -> str:
    """Compare the checksum with the published one, else the first download's; the sha256 of a first download."""
    record = _checksum_file(source, raw)
    algorithm, _, digest = source.checksum.partition(":")
    if not digest:
        algorithm, digest = "sha256", record.read_text("utf-8").split()[0] if record.exists() else ""
    with part.open("rb") as file:
        actual = hashlib.file_digest(file, partial(hashlib.new, algorithm, usedforsecurity=False)).hexdigest()
    if digest and actual != digest.lower():
        expected = "the published one" if source.checksum else f"that of the first download, in '{record}'"
        raise _MirrorFailed(f"its {algorithm} is not {expected}")
    return "" if digest else actual


def _unpack(source: Archive, part: Path, missing: Sequence[str], raw: Path, first_digest: str) -> None:
    """Unpack under temporary names, then rename all; a first download's digest is recorded."""
    with TemporaryDirectory(dir=raw, prefix=f".{source.name}.") as folder:
        targets = {path: Path(folder, str(number)) for number, path in enumerate(missing)}
        try:
            _extract(source, part, targets)
        except ARCHIVE_ERRORS:
            raise _MirrorFailed("the archive is damaged") from None
        for path, file in targets.items():
            if not file.exists():
                raise _MirrorFailed(f"the archive does not contain '{source.files[path]}'")
        if first_digest:
            name = PurePosixPath(urlsplit(source.urls[0]).path).name
            write_text(_checksum_file(source, raw), f"{first_digest}  {name}\n")
        for path, file in targets.items():
            (raw / path).parent.mkdir(parents=True, exist_ok=True)
            file.rename(raw / path)


def _extract(source: Archive, part: Path, targets: Mapping[str, Path]) -> None:
    for path, target in targets.items():
        if not source.files[path]:
            part.rename(target)
            return
    for name, open_ in _members(part):
        if file_path := _target(PurePosixPath(name), source, targets):
            file_path.parent.mkdir(parents=True, exist_ok=True)
            with open_() as packed, file_path.open("wb") as file:
                shutil.copyfileobj(packed, file)


def _members(part: Path) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    """The regular files of a zip or tar archive, each with a function that opens it."""
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


def _target(name: PurePosixPath, source: Archive, targets: Mapping[str, Path]) -> Path | None:
    """The target of a member of the archive, if it is one of the missing files or inside a missing folder."""
    for path, target in targets.items():
        member = source.files[path]
        if str(name) == member:
            return target
        if source.is_folder(path) and str(name).startswith(member):
            if ".." in name.parts:
                raise _MirrorFailed(f"the archive's path '{name}' leads outside its folder")
            return target / name.relative_to(member)
    return None
