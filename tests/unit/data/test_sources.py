"""Raw files: messages about missing files, and lines with their numbers."""

import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.data.corpus import split_by_seed
from plumbline.data.sources import declared_files, missing_files, read_lines
from plumbline.errors import PlumblineError

FILES = {"train": "x/train.txt", "dev": "x/dev.txt", "test": "x/test.txt"}
PLUGIN = """
from plumbline.registry import dataset

@dataset("mine", files={"all": "mine/all.txt", "rest": "mine/rest.txt"}, source="the page of mine")
def mine(raw, seed): ...
"""


def test_there_is_no_message_if_all_files_exist(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    for path in FILES.values():
        (tmp_path / path).touch()
    assert missing_files("x", FILES, tmp_path, "its page") is None


def test_missing_files_are_named_with_publisher_and_path(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x/train.txt").touch()
    assert missing_files("x", FILES, tmp_path, "its page") == (
        f"Dataset 'x' needs the files 'x/dev.txt' and 'x/test.txt', which are not in the folder '{tmp_path}': "
        "get them from its page and put them there under these names."
    )
    assert missing_files("x", {"train": "x/other.txt"}, tmp_path, "its page") == (
        f"Dataset 'x' needs the file 'x/other.txt', which is not in the folder '{tmp_path}': "
        "get it from its page and put it there under that name."
    )


def test_declared_files_come_from_the_declaration(tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(PLUGIN)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/all.txt").touch()
    assert declared_files(str(plugin), "mine", tmp_path, ["all"]) == {"all": tmp_path / "mine/all.txt"}
    with pytest.raises(PlumblineError, match=r"needs the file 'mine/rest\.txt'.* get it from the page of mine"):
        declared_files(str(plugin), "mine", tmp_path)


def test_lines_keep_their_numbers_and_odd_characters(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes("one\u2028more\r\n\r\n \nthree\x0bmore".encode())
    assert list(read_lines(path)) == [(1, "one\u2028more"), (4, "three\x0bmore")]


def test_bytes_of_another_encoding_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes("good\nna\u00efve\n".encode("latin-1"))
    assert [line for _, line in read_lines(path, "latin-1")] == ["good", "na\u00efve"]
    with pytest.raises(
        PlumblineError, match=r"lines.txt', line 2 is not utf-8 text: the file is damaged, download it again\."
    ):
        list(read_lines(path))


def test_splits_have_their_shares_and_follow_the_seed() -> None:
    shares = {"train": 0.8, "dev": 0.1, "test": 0.1}
    splits = split_by_seed(1000, shares, seed=3)
    assert [splits.count(split) for split in shares] == [800, 100, 100]
    assert splits == split_by_seed(1000, shares, seed=3)
    assert splits != split_by_seed(1000, shares, seed=4)
    assert [split_by_seed(13, shares, 0).count(split) for split in shares] == [10, 2, 1]


def test_importing_the_data_package_does_not_import_heavy_packages() -> None:
    readers = ["sst", "movie", "mock", "snli", "mnli", "quora"]
    modules = [
        "corpus",
        "sources",
        "tokenize",
        "vocabulary",
        "prepare",
        "embeddings",
        "fetch",
        *(f"datasets.{reader}" for reader in readers),
    ]
    code = f"import sys, {', '.join(f'plumbline.data.{module}' for module in modules)}\n"
    code += "print(sorted({'torch', 'spacy', 'gensim', 'pandas'} & set(sys.modules)))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
