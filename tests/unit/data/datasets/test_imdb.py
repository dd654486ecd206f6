"""IMDB reviews, in folders written as their publisher packs them."""

from pathlib import Path

import pytest

from plumbline.config.recipes import Preparation
from plumbline.data.corpus import Corpus
from plumbline.data.datasets.imdb import imdb, keras_words
from plumbline.data.prepare import prepare
from plumbline.errors import PlumblineError
from plumbline.registry import Registry

# Sorted by name, as Keras' file is, 10 comes before 1.
NAMES = {"pos": ["0_9", "10_8", "1_7", "2_10", "3_9"], "neg": ["0_1", "10_2", "1_3", "2_4", "3_1"]}


def write(raw: Path) -> Path:
    for part in ("train", "test"):
        for kind, names in NAMES.items():
            folder = raw / "imdb/aclImdb" / part / kind
            folder.mkdir(parents=True)
            for name in names:
                (folder / f"{name}.txt").write_text(f"Seen: {kind}-{name}!", encoding="utf-8")
    return raw / "imdb"


def named(corpus: Corpus, split: str) -> list[str]:
    return [" ".join(example.tokens[1:]) for example in corpus.examples if example.split == split]


def test_words_are_cut_as_keras_does() -> None:
    assert keras_words("It's <br /><br />GREAT,isn't\tit? (10/10)\nÉtude_2\x85") == (
        ["it's", "br", "br", "great", "isn't", "it", "10", "10", "étude", "2\x85"]
    )


def test_splits_are_drawn_with_the_positive_first(tmp_path: Path) -> None:
    write(tmp_path)
    corpus = imdb(tmp_path, 0)
    assert corpus.classes == ["negative", "positive"]
    # scikit-learn holds out places 8 and 4 of ten, and of the test reviews 3 and 9 stay.
    assert named(corpus, "dev") == ["pos 3 9", "neg 2 4"]
    assert named(corpus, "test") == ["pos 2 10", "neg 3 1"]
    assert named(corpus, "train") == [
        "pos 0 9",
        "pos 10 8",
        "pos 1 7",
        "pos 2 10",
        "neg 0 1",
        "neg 10 2",
        "neg 1 3",
        "neg 3 1",
    ]
    assert all(example.label == (example.tokens[1] == "pos") for example in corpus.examples)
    assert corpus.dropped == {"not drawn": {"test": 8}}


def test_long_reviews_are_left_out_before_the_draw(tmp_path: Path) -> None:
    folder = write(tmp_path) / "aclImdb"
    (folder / "train/pos/2_9.txt").write_text("word " * 400)
    (folder / "train/neg/9_1.txt").write_text("word " * 399)
    (folder / "test/pos/00_9.txt").write_text("word " * 400)
    (folder / "train/unsup").mkdir()
    corpus = imdb(tmp_path, 0)
    assert corpus.dropped == {"400 words or more": {"train": 1, "test": 1}, "not drawn": {"test": 8}}
    assert max(len(example.tokens) for example in corpus.examples) == 399
    assert named(corpus, "test") == ["pos 2 10", "neg 3 1"]


def test_test_reviews_hold_only_words_of_training_reviews(tmp_path: Path) -> None:
    folder = write(tmp_path) / "aclImdb"
    (folder / "test/neg/3_1.txt").write_text("Seen and unseen " + "unheard " * 500)
    assert imdb(tmp_path, 0).examples[-1].tokens == ["seen"]


def test_listed_reviews(tmp_path: Path) -> None:
    path = write(tmp_path) / "jain_wallace_split.tsv"
    names = ["train/neg/0_1", "train/pos/0_9", "test/pos/3_9", "test/neg/10_2"]
    splits = ["train", "dev", "test", "test"]
    rows = [f"{split}\taclImdb/{name}.txt" for split, name in zip(splits, names, strict=True)]
    path.write_text("\n".join(["split\tfile", *rows]) + "\n")
    corpus = imdb(tmp_path, 0, split="listed")
    assert [(e.split, e.label, " ".join(e.tokens[1:])) for e in corpus.examples] == [
        ("train", 0, "neg 0 1"),
        ("dev", 1, "pos 0 9"),
        ("test", 1, "pos 3 9"),
        ("test", 0, "neg 10 2"),
    ]
    assert corpus.dropped == {"not listed": {"train": 8, "test": 8}}


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("valid\taclImdb/train/pos/0_9.txt", "'valid' is not one of the splits train, dev, test"),
        ("train\taclImdb/train/pos/9_9.txt", "there is no review 'aclImdb/train/pos/9_9.txt'"),
        ("train\taclImdb/train/neg/0_1.txt", "'aclImdb/train/neg/0_1.txt' is listed twice"),
        ("train", "there is no review ''"),
    ],
)
def test_faults_of_the_list_are_named(tmp_path: Path, line: str, fault: str) -> None:
    path = write(tmp_path) / "jain_wallace_split.tsv"
    path.write_text(f"split\tfile\ntrain\taclImdb/train/neg/0_1.txt\n{line}\n")
    with pytest.raises(PlumblineError) as caught:
        imdb(tmp_path, 0, split="listed")
    assert str(caught.value) == f"'{path}', line 3: {fault}; correct the list or download the reviews again."


def test_faults_of_the_folders(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"needs the files 'imdb/aclImdb/train' and 'imdb/aclImdb/test', which"):
        imdb(tmp_path, 0)
    folder = write(tmp_path) / "aclImdb"
    with pytest.raises(PlumblineError, match=r"needs the file 'imdb/jain_wallace_split\.tsv', which"):
        imdb(tmp_path, 0, split="listed")
    (folder / "train/pos/1_7.txt").write_bytes(b"caf\xe9")
    with pytest.raises(PlumblineError, match=r"1_7\.txt' is not utf-8 text: the file is damaged, download it again\."):
        imdb(tmp_path, 0)
    (folder / "test/neg").rename(folder / "test/negative")
    (folder / "train/pos/1_7.txt").unlink()
    with pytest.raises(
        PlumblineError, match=(r"test' does not contain reviews \(\*\.txt\) in the folders 'pos' and 'neg'")
    ):
        imdb(tmp_path, 0)


def test_declared_preparation_is_a_recipe() -> None:
    declaration = Registry().get("dataset", "imdb")
    recipe = Preparation(**declaration.preparation)
    assert (recipe.longer_than, recipe.minimum_document_frequency) == (6, 10)
    assert declaration.counts == {"train": 17212, "dev": 4304, "test": 4363}


def test_reviews_of_more_than_240_words_are_dropped_by_the_recipe(tmp_path: Path) -> None:
    folder = write(tmp_path) / "aclImdb"
    (folder / "train/pos/2_9.txt").write_text("word " * 240)
    (folder / "train/neg/9_1.txt").write_text("word " * 241)
    declaration = Registry().get("dataset", "imdb-240")
    assert declaration.counts == {"train": 17212, "dev": 4304, "test": 4363}
    assert declaration.files == Registry().get("dataset", "imdb").files
    prepared = prepare(imdb(tmp_path, 0), Preparation(**declaration.preparation), "imdb-240", declaration.counts)
    assert max(split["longest"] for split in prepared.summary["splits"].values()) == 240
    assert sum(prepared.summary["dropped"]["length filter"].values()) == 1
    assert prepared.summary["partial"]["test"] == {"texts": 2, "published": 4363}
    assert (declaration.training, declaration.subword_training) == (
        ({"batch_size": 64}, {"batch_size": 64, "learning_rate": 1e-5})
    )
