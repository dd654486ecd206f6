"""Tests of the dataset my-dataset; run them with pytest."""

from pathlib import Path

import pytest

from plumbline.conformance import check
from plumbline.errors import PlumblineError
from plumbline.registry import Registry, load

FILE = Path(__file__).with_name("my_dataset.py")


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A folder with a small file in the publisher's format."""
    (tmp_path / "my-dataset").mkdir()
    lines = [f"{['bad', 'good'][i % 2]}\tText {i} it is\n" for i in range(200)]
    (tmp_path / "my-dataset" / "all.tsv").write_text("".join(lines))
    return tmp_path


def test_it_conforms(raw: Path) -> None:
    assert check("dataset", "my-dataset", Registry([FILE]), raw) == []


def test_texts_keep_their_labels(raw: Path) -> None:
    corpus = load(f"{FILE}:my_dataset")(raw, 0)
    assert sorted(int(text.tokens[1]) for text in corpus.examples) == list(range(200))
    assert all(text.label == int(text.tokens[1]) % 2 and text.tokens[0] == "text" for text in corpus.examples)


def test_an_unknown_class_is_refused(raw: Path) -> None:
    (raw / "my-dataset" / "all.tsv").write_text("good\tfine\nfair\tso so\n")
    with pytest.raises(PlumblineError, match="line 2"):
        load(f"{FILE}:my_dataset")(raw, 0)
