"""Fetching the VADER files, from small archives of the same shape."""

import hashlib
import io
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from plumbline.data import fetch
from plumbline.errors import PlumblineError

SNIPPETS, LEXICON = b"1\t2.5\tGood.\r\n", b"good\t1.9\t0.9\t[2]\n"


def archive(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source distribution whose contents are the expected ones, with a member that would escape its folder."""
    study = archive({fetch.SNIPPETS: SNIPPETS, "../../escaped.txt": b"no"})
    monkeypatch.setattr(fetch, "STUDY_SHA256", hashlib.sha256(study).hexdigest())
    monkeypatch.setattr(fetch, "LEXICON_SHA256", hashlib.sha256(LEXICON).hexdigest())
    path = tmp_path / "package.tar.gz"
    path.write_bytes(archive({fetch.STUDY: study, fetch.LEXICON: LEXICON, "../escaped.txt": b"no"}))
    return path


def test_only_the_named_files_are_written(package: Path, tmp_path: Path) -> None:
    into = tmp_path / "raw/vader"
    assert fetch.fetch_vader(into, package) == [
        into / "movieReviewSnippets_GroundTruth.txt",
        into / "vader_lexicon.txt",
    ]
    assert (into / "movieReviewSnippets_GroundTruth.txt").read_bytes() == SNIPPETS
    assert (into / "vader_lexicon.txt").read_bytes() == LEXICON
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "movieReviewSnippets_GroundTruth.txt",
        "package.tar.gz",
        "vader_lexicon.txt",
    ]


def test_pip_downloads_the_source_distribution(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        (Path(command[-1]) / "vaderSentiment-3.3.2.tar.gz").write_bytes(package.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    assert all(path.is_file() for path in fetch.fetch_vader(tmp_path / "vader"))
    assert commands[0][1:4] == ["-m", "pip", "download"]
    assert {"--no-deps", "--no-binary", "vaderSentiment==3.3.2"} <= set(commands[0])
    assert not Path(commands[0][-1]).exists()


def test_a_failed_download_is_reported_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = "WARNING: retrying\nERROR: No matching distribution found for vaderSentiment==3.3.2\n"
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1, "", stderr))
    with pytest.raises(PlumblineError) as caught:
        fetch.fetch_vader(tmp_path / "vader")
    assert str(caught.value) == (
        "pip could not download the source distribution of vaderSentiment==3.3.2 (No matching distribution found for "
        "vaderSentiment==3.3.2): connect to a package index, or download vaderSentiment-3.3.2.tar.gz on another "
        "machine and pass its path as the archive."
    )
    assert not (tmp_path / "vader").exists()


def test_changed_contents_are_refused(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "STUDY_SHA256", "0" * 64)
    with pytest.raises(PlumblineError, match=r"hutto_ICWSM_2014\.tar\.gz' in '.*' is not the published file"):
        fetch.fetch_vader(tmp_path / "vader", package)
    assert not (tmp_path / "vader").exists()


@pytest.mark.parametrize("damage", ["not an archive", "truncated", "without members"])
def test_damaged_archives_are_refused(package: Path, tmp_path: Path, damage: str) -> None:
    content = package.read_bytes()
    package.write_bytes(
        {"not an archive": b"hello", "truncated": content[: len(content) // 2], "without members": archive({"a": b""})}[
            damage
        ]
    )
    with pytest.raises(PlumblineError, match="is damaged or is not the source distribution of vaderSentiment"):
        fetch.fetch_vader(tmp_path / "vader", package)


def test_a_missing_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"cannot be read: pass the path of vaderSentiment-3.3.2.tar.gz\."):
        fetch.fetch_vader(tmp_path / "vader", tmp_path / "none.tar.gz")
