"""The Stanford Sentiment Treebank, on trees written in its form."""

from pathlib import Path

import pytest

from plumbline.config.recipes import Preparation
from plumbline.data.corpus import Example
from plumbline.data.datasets.sst import parse_tree, sst
from plumbline.data.tokenize import clean_treebank
from plumbline.errors import PlumblineError
from plumbline.registry import Registry

TREES = [
    "(3 (2 It) (4 (2 's) (4 (3 good) (2 .))))",
    "(0 (2 A) (1 (1 (2 -LRB-) (1 bad)) (2 (2 -RRB-) (2 film))))",
    "(2 (2 A) (2 film))",
    "(4 Great)",
    "(1 (1 Not) (2 great))",
]


def write(raw: Path, trees: list[str] = TREES) -> Path:
    (raw / "sst/trees").mkdir(parents=True)
    for split in ("train", "dev", "test"):
        (raw / f"sst/trees/{split}.txt").write_text("\n".join(trees) + "\n")
    return raw


def test_labels_words_and_splits(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    corpus = sst(write(tmp_path), 0)
    assert corpus.classes == ["negative", "positive"]
    assert corpus.dropped == {"neutral": {"train": 1, "dev": 1, "test": 1}}
    assert corpus.examples[:4] == [
        Example("train", 1, ["it", "s", "good"], evidence=[False, False, True]),
        Example("train", 0, ["a", "bad", "film"], evidence=[False, True, False]),
        Example("train", 1, ["great"], evidence=[True]),
        Example("train", 0, ["not", "great"], evidence=[True, False]),
    ]
    assert [example.split for example in corpus.examples] == ["train"] * 4 + ["dev"] * 4 + ["test"] * 4


def test_leaves_are_counted_before_anything_is_cleaned(tmp_path: Path) -> None:
    """`It 's good .` and `A -LRB- bad -RRB- film` have three words each once cleaned, but four and five leaves."""
    pytest.importorskip("spacy")
    raw = write(tmp_path)
    four = sst(raw, 0, leaves_over=4)
    bad = ["a", "bad", "film"], None, None, [False, True, False]
    assert four.examples == [Example(split, 0, *bad) for split in ("train", "dev", "test")]
    each = {"train": 1, "dev": 1, "test": 1}
    # The neutral tree, which is short too, counts once, as neutral.
    assert four.dropped == {"neutral": each, "few leaves": dict.fromkeys(each, 3)}
    three = sst(raw, 0, leaves_over=3)
    assert [example.tokens for example in three.examples[:2]] == [["it", "s", "good"], ["a", "bad", "film"]]
    assert three.dropped["few leaves"] == dict.fromkeys(each, 2) and len(three.examples) == 6


def test_raw_leaves_keep_their_case_and_signs(tmp_path: Path) -> None:
    raw = write(tmp_path)
    corpus = sst(raw, 0, tokens="raw")
    assert corpus.examples[:4] == [
        Example("train", 1, ["It", "'s", "good", "."], evidence=[False, False, True, False]),
        Example("train", 0, ["A", "-LRB-", "bad", "-RRB-", "film"], evidence=[False, False, True, False, False]),
        Example("train", 1, ["Great"], evidence=[True]),
        Example("train", 0, ["Not", "great"], evidence=[True, False]),
    ]
    assert corpus.dropped == {"neutral": {"train": 1, "dev": 1, "test": 1}}
    assert sst(raw, 0, leaves_over=4, tokens="raw").examples[0].tokens == ["A", "-LRB-", "bad", "-RRB-", "film"]


def test_no_leaves_are_asked_for_unless_set(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    raw = write(tmp_path)
    assert sst(raw, 0) == sst(raw, 0, leaves_over=0) and "few leaves" not in sst(raw, 0).dropped
    assert Registry().get("dataset", "sst").options["leaves_over"].default == 0


def test_tree_by_hand() -> None:
    assert parse_tree("(3 (2 (2 The) (2 Rock)) (4 is))") == (3, [("The", 2), ("Rock", 2), ("is", 4)])
    assert parse_tree("(0 (2 3) (1 4))") == (0, [("3", 2), ("4", 1)])
    assert parse_tree("(4 Great)") == (4, [("Great", 4)])


def test_evidence_leans_to_the_class_and_is_that_of_the_leaf_whatever_it_is_cleaned_to(tmp_path: Path) -> None:
    """A leaf of two words, one that is no word, and words that lean to the other class."""
    pytest.importorskip("spacy")
    trees = ["(3 (4 well-made) (2 (2 ,) (1 sad)))", "(1 (4 well-made) (2 (0 ,) (1 sad)))"]
    good, bad = sst(write(tmp_path, trees), 0).examples[:2]
    assert good.tokens == bad.tokens == ["well", "made", "sad"]
    assert good.evidence == [True, True, False] and bad.evidence == [False, False, True]


def test_leaves_cleaned_alone_are_the_words_of_the_cleaned_sentence(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    leaves = ["It", "'s", "a", "10pm", "can", "not", "cannot", "d.c.", "dont", "-LRB-", "ca", "n't", "25km", "co-star"]
    tree = "(3 " + " ".join(f"(2 {leaf})" for leaf in leaves) + ")"
    assert sst(write(tmp_path, [tree, TREES[1]]), 0).examples[0].tokens == clean_treebank([" ".join(leaves)])[0]


@pytest.mark.parametrize(
    ("tree", "fault"),
    [
        ("(3 (2 It) (4 works)", "has unbalanced brackets"),
        ("(3 (2 It) (4 works)))", "has unbalanced brackets"),
        ("(3 It) (2 works)", "has unbalanced brackets"),
        ("(5 (2 It) (4 works))", "has no root label 0 to 4"),
        ("((2 It) (4 works))", "has no root label 0 to 4"),
        ("It works .", "has no root label 0 to 4"),
        ("(3", "has unbalanced brackets"),
    ],
)
def test_malformed_trees_are_named_by_file_and_line(tmp_path: Path, tree: str, fault: str) -> None:
    raw = write(tmp_path, [*TREES[:2], tree])
    with pytest.raises(PlumblineError) as caught:
        sst(raw, 0)
    assert str(caught.value) == f"'{raw / 'sst/trees/train.txt'}', line 3: the tree {fault}; download the file again."


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError) as caught:
        sst(tmp_path, 0)
    assert str(caught.value) == (
        "Dataset 'sst' needs the files 'sst/trees/train.txt', 'sst/trees/dev.txt' and 'sst/trees/test.txt', which are "
        f"not in the folder '{tmp_path}': get them from the Stanford Sentiment Treebank page, "
        "https://nlp.stanford.edu/sentiment/ (trainDevTestTrees_PTB.zip) and put them there under these names."
    )


def test_declared_preparation_is_a_recipe() -> None:
    recipe = Preparation(**Registry().get("dataset", "sst").preparation)
    assert (recipe.longer_than, recipe.shorter_than, recipe.open_bound) == (5, None, "keep")
    assert (recipe.embedding.path, recipe.embedding.missing) == ("vectors/wiki.simple.vec", "zeros")


def test_declared_recipes_of_the_raw_trees() -> None:
    declaration, cleaned = (Registry().get("dataset", name) for name in ("sst-2", "sst"))
    assert (declaration.files, declaration.licence, declaration.pointer) == (
        (cleaned.files, cleaned.licence, cleaned.pointer)
    )
    assert (declaration.options["tokens"].default, cleaned.options["tokens"].default) == ("raw", "cleaned")
    recipe = Preparation(**declaration.preparation)
    assert (recipe.longer_than, recipe.shorter_than, recipe.minimum_document_frequency) == (None, None, 1)
    assert recipe.vocabulary_of == "all"
    assert (recipe.embedding.path, recipe.embedding.missing) == ("vectors/wiki-news-300d-1M.vec", "like-found")
    assert (declaration.training, declaration.subword_training) == (
        ({"batch_size": 64}, {"batch_size": 64, "learning_rate": 1e-5})
    )
    assert (cleaned.training, cleaned.subword_training) == ({}, {})
