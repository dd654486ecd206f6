"""Downloads from a local server: resumed, checksummed, from mirrors, and complete or not at all."""

import hashlib
import io
import re
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from plumbline.config.resolve import resolve
from plumbline.data import download as module
from plumbline.data.download import download
from plumbline.data.publishers import ARCHIVES, Archive, archive_of
from plumbline.data.raw import check_raw, downloads
from plumbline.errors import PlumblineError
from plumbline.registry import Registry

TEXTS = {"trees/train.txt": b"(3 fine)\n" * 9000, "trees/dev.txt": b"(1 bore)\n", "trees/extra/notes.txt": b"notes"}
FILES = {"x/train.txt": "trees/train.txt", "x/dev.txt": "trees/dev.txt"}
FOLDER = {"x/whole": "trees/"}


@dataclass
class Server:
    """The files that it serves, how it misbehaves, and the requests that it received."""

    port: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    drops: list[int] = field(default_factory=list)  # Bytes after which each of the next responses ends.
    wrong_ranges: bool = False
    requests: list[tuple[str, str | None]] = field(default_factory=list)

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"

    def archive(self, name: str, files: dict[str, str], content: bytes | None = None, **facts: Any) -> Archive:
        """An archive served under its name, with the right checksum unless another is given."""
        if content is not None:
            self.files[f"/{name}"] = content
            facts.setdefault("checksum", f"sha256:{hashlib.sha256(content).hexdigest()}")
        return Archive(name.partition(".")[0], facts.pop("urls", (self.url(name),)), files, **facts)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested = self.headers.get("Range")
            state.requests.append((self.path, requested))
            content = state.files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            start = int(requested[6:-1]) if requested and state.ranges else 0
            if start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.end_headers()
                return
            self.send_response(206 if requested and state.ranges else 200)
            if requested and state.ranges:
                first = 0 if state.wrong_ranges else start
                self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            self.wfile.write(content[start : start + state.drops.pop(0)] if state.drops else content[start:])

        def log_message(self, *_: Any) -> None: ...

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(module, "PAUSES", (0, 0, 0))
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        state.port = http.server_address[1]
        threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        yield state
        http.shutdown()


def packed(kind: str, members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as pack:
            pack.mkdir("trees")
            for name, content in members.items():
                pack.writestr(name, content)
    else:
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def below(folder: Path) -> dict[str, bytes]:
    """All files of a folder, hidden and temporary ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def placed(files: dict[str, str] = FILES) -> dict[str, bytes]:
    return {path: TEXTS[member] for path, member in files.items()}


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_named_members_are_put_in_place_and_nothing_else(server: Server, tmp_path: Path, kind: str) -> None:
    content = packed(kind, {**TEXTS, "../escaped.txt": b"no", "/absolute.txt": b"no"})
    download(server.archive(f"x.{kind}", FILES, content), tmp_path / "raw")
    assert below(tmp_path) == {f"raw/{path}": text for path, text in placed().items()}
    assert server.requests == [(f"/x.{kind}", None)]


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_whole_folder_is_put_in_place(server: Server, tmp_path: Path, kind: str) -> None:
    content = packed(kind, {**TEXTS, "treesome.txt": b"no", "other/trees/a.txt": b"no"})
    download(server.archive(f"x.{kind}", FOLDER, content), tmp_path)
    assert below(tmp_path / "x/whole") == {name.removeprefix("trees/"): text for name, text in TEXTS.items()}
    assert len(below(tmp_path)) == len(TEXTS)


def test_paths_of_a_tar_may_begin_with_a_dot(server: Server, tmp_path: Path) -> None:
    dotted = {f"./{name}": text for name, text in TEXTS.items()}
    download(server.archive("x.tar.gz", FILES, packed("tar.gz", dotted)), tmp_path)
    assert below(tmp_path) == placed()


def test_a_plain_file_is_put_in_place_as_it_is(server: Server, tmp_path: Path) -> None:
    download(server.archive("x.csv", {"deep/down/x.csv": ""}, b"1,2\n"), tmp_path)
    assert below(tmp_path) == {"deep/down/x.csv": b"1,2\n"}


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256"])
def test_checksums_of_several_kinds(server: Server, tmp_path: Path, algorithm: str) -> None:
    digest = hashlib.new(algorithm, b"1,2\n").hexdigest().upper()
    download(server.archive("x.csv", {"x.csv": ""}, b"1,2\n", checksum=f"{algorithm}:{digest}"), tmp_path)
    with pytest.raises(PlumblineError, match=f"its {algorithm} is not the published one"):
        download(server.archive("y.csv", {"y.csv": ""}, b"1,3\n", checksum=f"{algorithm}:{digest}"), tmp_path)
    assert below(tmp_path) == {"x.csv": b"1,2\n"}


def test_a_lost_connection_is_resumed(server: Server, tmp_path: Path) -> None:
    archive = server.archive("x.zip", FILES, packed("zip", TEXTS))
    server.drops = [10_000] * (len(module.PAUSES) + 2)
    download(archive, tmp_path)
    assert below(tmp_path) == placed()
    assert [requested for _, requested in server.requests] == [None, *(f"bytes={tens}0000-" for tens in range(1, 6))]


def test_a_later_run_resumes_an_earlier_one(server: Server, tmp_path: Path) -> None:
    content = packed("zip", TEXTS)
    archive = server.archive("x.zip", FILES, content)
    server.drops = [10_000, 0, 0, 0]
    with pytest.raises(PlumblineError, match=rf"the connection was lost after 10000 of {len(content)} bytes"):
        download(archive, tmp_path)
    assert below(tmp_path) == {"x.part": content[:10_000]}
    assert len(server.requests) == 1 + len(module.PAUSES)
    download(archive, tmp_path)
    assert server.requests[-1] == ("/x.zip", "bytes=10000-")
    assert below(tmp_path) == placed()


def test_attempts_that_get_no_further_end(server: Server, tmp_path: Path) -> None:
    archive = server.archive("x.zip", FILES, packed("zip", TEXTS))
    server.ranges = False
    server.drops = [10_000] * 50
    with pytest.raises(PlumblineError, match="the connection was lost"):
        download(archive, tmp_path)
    assert len(server.requests) == 1 + len(module.PAUSES)


def test_a_server_without_range_requests_resends_all(server: Server, tmp_path: Path) -> None:
    archive = server.archive("x.zip", FILES, packed("zip", TEXTS))
    server.ranges = False
    server.drops = [30_000]
    download(archive, tmp_path)
    assert below(tmp_path) == placed()
    assert [requested for _, requested in server.requests] == [None, "bytes=30000-"]


def test_a_response_with_another_range_is_refused(server: Server, tmp_path: Path) -> None:
    archive = server.archive("x.zip", FILES, packed("zip", TEXTS), urls=(server.url("x.zip"),))
    (tmp_path / "x.part").write_bytes(packed("zip", TEXTS)[:100])
    server.wrong_ranges = True
    with pytest.raises(PlumblineError, match="HTTP 206, which does not match the request"):
        download(archive, tmp_path)


def test_a_partial_file_of_something_else_is_discarded(server: Server, tmp_path: Path) -> None:
    (tmp_path / "x.part").write_bytes(b"something else")
    download(server.archive("x.zip", FILES, packed("zip", TEXTS)), tmp_path)
    assert below(tmp_path) == placed()
    assert [requested for _, requested in server.requests] == ["bytes=14-", None]


@pytest.mark.parametrize(("more", "again"), [(b"", []), (b"x", [None])])
def test_a_partial_file_that_is_whole_or_too_long(
    server: Server, tmp_path: Path, more: bytes, again: list[None]
) -> None:
    content = packed("zip", TEXTS)
    (tmp_path / "x.part").write_bytes(content + more)
    download(server.archive("x.zip", FILES, content, checksum=""), tmp_path)
    record = f"{hashlib.sha256(content).hexdigest()}  x.zip\n".encode()
    assert below(tmp_path) == {**placed(), "x/x.sha256": record}
    assert [requested for _, requested in server.requests] == [f"bytes={len(content + more)}-", *again]


def test_a_wrong_checksum_falls_back_to_the_mirror(server: Server, tmp_path: Path) -> None:
    content = packed("zip", TEXTS)
    archive = server.archive("x.zip", FILES, content, urls=(server.url("bad.zip"), server.url("x.zip")))
    server.files["/bad.zip"] = content.replace(b"bore", b"boar")
    download(archive, tmp_path)
    assert below(tmp_path) == placed()
    assert [path for path, _ in server.requests] == ["/bad.zip", "/x.zip"]


def test_a_fallback_archive_is_used(server: Server, tmp_path: Path) -> None:
    other = server.archive("y.tar.gz", FILES, packed("tar.gz", TEXTS))
    download(server.archive("x.zip", FILES, fallback=other), tmp_path)
    assert below(tmp_path) == placed()


def test_a_failed_download_is_one_sentence_with_reasons_and_advice(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(module.time, "sleep", pauses.append)
    content = packed("zip", TEXTS)
    closed = "http://127.0.0.1:9/x.zip"
    urls = (server.url("none.zip"), server.url("x.zip"), closed)
    with pytest.raises(PlumblineError) as caught:
        download(server.archive("x.zip", FILES, content, checksum="sha256:00", urls=urls), tmp_path)
    host = f"127.0.0.1:{server.port}"
    assert str(caught.value) == (
        f"The archive 'x' could not be downloaded ({host}: HTTP 404; {host}: its sha256 is not the published one; "
        f"127.0.0.1:9: Connection refused): run again later, or download {urls[0]} in another way and put "
        f"'x/train.txt' and 'x/dev.txt' into the folder '{tmp_path}'."
    )
    assert below(tmp_path) == {}
    assert pauses == []


def test_a_folder_that_cannot_be_written_is_one_sentence(server: Server, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a file where a folder should be")
    with pytest.raises(PlumblineError, match=r"The archive 'x' cannot be written to the folder '.*': (File|Not a)"):
        download(server.archive("x.zip", FILES, packed("zip", TEXTS)), tmp_path)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_no_path_of_a_folder_leads_outside(server: Server, tmp_path: Path, kind: str) -> None:
    content = packed(kind, {**TEXTS, "trees/../../../../escaped.txt": b"no"})
    with pytest.raises(PlumblineError, match=r"the archive's path 'trees/\.\./.*' leads outside its folder"):
        download(server.archive(f"x.{kind}", FOLDER, content), tmp_path / "raw")
    assert below(tmp_path) == {}


def test_links_are_left_out(server: Server, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        link = tarfile.TarInfo("trees/link.txt")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "secret.txt")
        tar.addfile(link)
        tar.addfile(tarfile.TarInfo("trees/empty.txt"), io.BytesIO())
    download(server.archive("x.tar.gz", FOLDER, buffer.getvalue()), tmp_path / "raw")
    assert [path.name for path in (tmp_path / "raw/x/whole").iterdir()] == ["empty.txt"]
    with pytest.raises(PlumblineError, match=r"the archive does not contain 'trees/link\.txt'"):
        download(server.archive("y.tar.gz", {"y.txt": "trees/link.txt"}, buffer.getvalue()), tmp_path / "raw")


def test_existing_files_are_not_changed(server: Server, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x/train.txt").write_text("by hand")
    archive = server.archive("x.zip", FILES, packed("zip", TEXTS))
    download(archive, tmp_path)
    assert below(tmp_path) == {"x/train.txt": b"by hand", "x/dev.txt": TEXTS["trees/dev.txt"]}
    download(archive, tmp_path)
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
@pytest.mark.parametrize("damage", ["truncated", "without a member", "a page"])
def test_a_damaged_archive_leaves_nothing(server: Server, tmp_path: Path, kind: str, damage: str) -> None:
    content, fault = {
        "truncated": (packed(kind, TEXTS)[:-300], "the archive is damaged"),
        "without a member": (packed(kind, {"trees/dev.txt": b""}), r"the archive does not contain 'trees/train\.txt'"),
        "a page": (b"<html>Please log in.</html>", "the archive is damaged"),
    }[damage]
    with pytest.raises(PlumblineError, match=fault):
        download(server.archive(f"x.{kind}", FILES, content, checksum=""), tmp_path)
    assert below(tmp_path) == {}


def test_without_a_published_checksum_the_first_download_counts(server: Server, tmp_path: Path) -> None:
    content = packed("tar.gz", TEXTS)
    archive = server.archive("x.tar.gz", FILES, content, checksum="")
    download(archive, tmp_path)
    record = f"{hashlib.sha256(content).hexdigest()}  x.tar.gz\n".encode()
    assert below(tmp_path) == {**placed(), "x/x.sha256": record}

    (tmp_path / "x/dev.txt").unlink()
    server.files["/x.tar.gz"] = packed("tar.gz", {**TEXTS, "trees/dev.txt": b"changed"})
    with pytest.raises(PlumblineError, match=r"its sha256 is not that of the first download, in '.*/x/x\.sha256'"):
        download(archive, tmp_path)
    assert not (tmp_path / "x/dev.txt").exists()

    server.files["/x.tar.gz"] = content
    download(archive, tmp_path)
    assert below(tmp_path) == {**placed(), "x/x.sha256": record}


def test_concurrent_downloads_of_one_archive_wait_for_each_other(server: Server, tmp_path: Path) -> None:
    archive = server.archive("x.zip", FILES, packed("zip", TEXTS))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: download(archive, tmp_path), range(4)))
    assert below(tmp_path) == placed()
    assert len(server.requests) == 1


def test_every_archive_is_well_formed() -> None:
    digits = {"md5": 32, "sha1": 40, "sha256": 64}
    sources = [source for archive in ARCHIVES.values() for source in archive.sources()]
    assert len({source.name for source in sources}) == len(sources)
    for source in sources:
        assert re.fullmatch(r"\w*[a-z]", source.name)
        assert source.urls and all(url.startswith(("https://", "http://")) for url in source.urls)
        assert all(not path.startswith("/") and ".." not in path for path in source.files)
        if source.checksum:
            algorithm, _, digest = source.checksum.partition(":")
            assert re.fullmatch(r"[0-9a-f]+", digest) and len(digest) == digits[algorithm]
    paths = [path for archive in ARCHIVES.values() for path in archive.files]
    assert len(set(paths)) == len(paths)
    assert all(set(archive.fallback.files) == set(archive.files) for archive in ARCHIVES.values() if archive.fallback)


def test_the_archive_of_a_path() -> None:
    assert archive_of("sst/trees/dev.txt") is ARCHIVES["sst"]
    assert archive_of("./vectors/wiki.simple.vec") is ARCHIVES["wiki_simple"]
    assert archive_of("vectors/wiki-news-300d-1M.vec") is ARCHIVES["wiki_news"]
    assert archive_of("xnli/XNLI-1.0/xnli.test.tsv") is ARCHIVES["xnli"]
    assert archive_of("sst/trees/other.txt") is None
    assert ARCHIVES["imdb"].is_folder("imdb/aclImdb/train")
    assert not ARCHIVES["sst"].is_folder("sst/trees/dev.txt")


def test_datasets_name_their_files_as_the_archives_do() -> None:
    folders = {Path(path).parts[0] for archive in ARCHIVES.values() for path in archive.files}
    for declaration in Registry().all("dataset"):
        for key, path in declaration.files.items():
            if key == "split=listed:split":
                continue  # A list of one's own.
            assert archive_of(path) or Path(path).parts[0] not in folders, (declaration.name, path)


def test_reading_the_list_imports_nothing_heavy() -> None:
    code = "import sys, plumbline.data.publishers\n"
    code += "print(sorted({'torch', 'numpy', 'pyarrow', 'pydantic', 'tqdm', 'http.client'} & set(sys.modules)))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


STUDY: dict[str, Any] = {"datasets": {"sst": {}}, "models": {"average-tanh": {}}, "measures": ["attention"]}
OPINIONS: dict[str, Any] = {**STUDY, "datasets": {"sst": {}, "mock-2": {"words": "opinion-lexicon"}}}


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLUMBLINE_OFFLINE", raising=False)


def put(raw: Path, *paths: str) -> None:
    for path in paths:
        (raw / path).parent.mkdir(parents=True, exist_ok=True)
        (raw / path).touch()


@pytest.mark.usefixtures("online")
def test_a_study_downloads_what_it_needs_and_does_not_have(tmp_path: Path) -> None:
    resolved = resolve(STUDY)
    check_raw(resolved, tmp_path)
    trees = ["sst/trees/train.txt", "sst/trees/dev.txt", "sst/trees/test.txt"]
    vectors = (ARCHIVES["wiki_simple"], ["vectors/wiki.simple.vec"])
    assert downloads(resolved, tmp_path) == [(ARCHIVES["sst"], trees), vectors]
    put(tmp_path, trees[1])
    assert downloads(resolved, tmp_path) == [(ARCHIVES["sst"], [trees[0], trees[2]]), vectors]
    put(tmp_path, *trees, "vectors/wiki.simple.vec")
    assert downloads(resolved, tmp_path) == []


@pytest.mark.usefixtures("online")
def test_an_archive_is_downloaded_for_what_is_needed_only(tmp_path: Path) -> None:
    other = {"sst": {"preparation": {"embedding": {"kind": "random"}}}}
    put(tmp_path, "sst/trees/train.txt", "sst/trees/dev.txt", "sst/trees/test.txt")
    assert downloads(resolve({**STUDY, "datasets": other}), tmp_path) == []


@pytest.mark.usefixtures("online")
def test_files_that_cannot_be_downloaded_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"Dataset 'mock-2' needs the files 'opinion_lexicon/positive-words\.txt'"):
        check_raw(resolve(OPINIONS), tmp_path)
    other = {"sst": {"preparation": {"embedding": {"path": "vectors/mine.vec"}}}}
    with pytest.raises(PlumblineError, match=r"`datasets\.sst.*`: The word vectors 'vectors/mine\.vec' are not in"):
        check_raw(resolve({**STUDY, "datasets": other}), tmp_path)


@pytest.mark.parametrize(("value", "refused"), [("1", True), ("0", False), ("", False)])
def test_offline_all_missing_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, refused: bool
) -> None:
    monkeypatch.setenv("PLUMBLINE_OFFLINE", value)
    resolved = resolve(STUDY)
    assert bool(downloads(resolved, tmp_path)) is not refused
    if not refused:
        check_raw(resolved, tmp_path)
        return
    with pytest.raises(PlumblineError, match=r"'sst/trees/train\.txt'.* get them from the Stanford Sentiment Treebank"):
        check_raw(resolved, tmp_path)
    put(tmp_path, "sst/trees/train.txt", "sst/trees/dev.txt", "sst/trees/test.txt")
    with pytest.raises(PlumblineError, match=r"'vectors/wiki\.simple\.vec' are not in .* get them from fastText"):
        check_raw(resolved, tmp_path)
