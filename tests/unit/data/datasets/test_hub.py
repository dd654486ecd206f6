"""Datasets of the Hugging Face hub, on a local folder in its format; the hub itself is not asked."""

import csv
from pathlib import Path

import pytest

from plumbline.data.corpus import Corpus
from plumbline.data.datasets.hub import hub
from plumbline.errors import PlumblineError

pytest.importorskip("datasets")
CARD = """---
configs:
- config_name: default
  data_files:
{files}
- config_name: other
  data_files: data/train.csv
dataset_info:
  config_name: default
  features:
  - name: sentence
    dtype: string
  - name: label
    dtype:
      class_label:
        names: {{'0': positive, '1': negative}}
---
"""
SIZES = {"train": 8, "validation": 4, "test": 4}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A dataset with three splits and a further one, whose classes are not in alphabetical order."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "set" / "data").mkdir(parents=True)
    for split, size in {**SIZES, "unsupervised": 2}.items():
        with (tmp_path / "set" / "data" / f"{split}.csv").open("w", newline="") as file:
            label = [-1 if split == "unsupervised" else k % 2 for k in range(size)]
            csv.writer(file).writerows([["sentence", "label"], *((f"{split} {k}", label[k]) for k in range(size))])
    files = "".join(f"  - split: {split}\n    path: data/{split}.csv\n" for split in (*SIZES, "unsupervised"))
    (tmp_path / "set" / "README.md").write_text(CARD.format(files=files.rstrip()))
    return tmp_path / "set"


def read(folder: Path, **options) -> Corpus:
    given = {"text": "sentence", "label": "label", "tokens": "spaces", **options}
    return hub(folder, 0, name=str(folder), **given)


def fault(folder: Path, **options) -> str:
    with pytest.raises(PlumblineError) as error:
        read(folder, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_splits_and_classes_are_those_of_the_dataset(folder):
    corpus = read(folder)
    assert corpus.classes == ["positive", "negative"]
    expected = [
        (split, k % 2, [name, str(k)])
        for split, name in zip(("train", "dev", "test"), SIZES, strict=True)
        for k in range(SIZES[name])
    ]
    assert [(example.split, example.label, example.tokens) for example in corpus.examples] == expected
    assert read(folder, classes={"negative": "bad", "positive": "good"}).classes == ["bad", "good"]


def test_a_dataset_of_one_split_is_drawn(folder):
    corpus = read(folder, config="other", shares={"train": 0.5, "dev": 0.25, "test": 0.25})
    assert corpus.classes == ["0", "1"] and corpus.drawn["shares"]["dev"] == 0.25
    assert sorted(example.split for example in corpus.examples) == ["dev"] * 2 + ["test"] * 2 + ["train"] * 4


def test_a_changed_file_of_a_folder_is_read_again(folder):
    before = len(read(folder).examples)
    with (folder / "data" / "train.csv").open("a") as file:
        file.write("a new row,1\n")
    assert len(read(folder).examples) == before + 1


def test_splits_may_be_named(folder):
    corpus = read(folder, splits={"train": "train", "test": "validation"}, dev_share=0.25)
    assert [e.tokens[0] for e in corpus.examples if e.split == "test"] == ["validation"] * 4
    assert [e.tokens[0] for e in corpus.examples if e.split == "dev"] == ["train"] * 2
    assert fault(folder, splits={"train": "train", "test": "validatoin"}).endswith("did you mean 'validation'?")


def test_faults(folder, monkeypatch):
    assert fault(folder, text="sentense") == (
        f"'{folder}' has no column 'sentense'; did you mean 'sentence'? Its columns are sentence, label."
    )
    splits = ", ".join((*SIZES, "unsupervised"))
    assert f"`shares` draws splits, but '{folder}' has the splits {splits}; remove it." in fault(
        folder, shares={"train": 0.8, "dev": 0.1, "test": 0.1}
    )
    assert "cannot be loaded" in fault(folder, config="none")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(
        PlumblineError,
        match=(r"'no/such' cannot be loaded .*HF_HUB_OFFLINE is set, but the dataset is not in the cache"),
    ):
        hub(folder, 0, name="no/such", revision="0" * 40, text="sentence", label="label")
