"""SNLI, on lines written in its form."""

import json
from pathlib import Path
from typing import Any

import pytest

from plumbline.config.recipes import PAIRED_TRAINING, Preparation, Training
from plumbline.data.corpus import Example
from plumbline.data.datasets.snli import snli
from plumbline.errors import PlumblineError
from plumbline.registry import Registry


def line(label: Any = "neutral", premise: Any = "A man  sits.", hypothesis: Any = "He's 40.") -> str:
    rest = {"annotator_labels": [label], "pairID": "1"}
    return json.dumps({"gold_label": label, "sentence1": premise, "sentence2": hypothesis, **rest})


LINES = [line(), line("-"), line("entailment", hypothesis="A man sits."), line("contradiction", "Nobody sits.")]


def write(raw: Path, lines: list[str] = LINES) -> Path:
    folder = raw / "snli/snli_1.0"
    folder.mkdir(parents=True)
    for split in ("train", "dev", "test"):
        (folder / f"snli_1.0_{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "snli_1.0_train.jsonl"


def test_labels_pairs_and_splits(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    write(tmp_path)
    corpus = snli(tmp_path, 0)
    assert corpus.classes == ["neutral", "contradiction", "entailment"]
    assert corpus.dropped == {"no agreed label": {"train": 1, "dev": 1, "test": 1}}
    man, qqq = ["a", "man", "sits", "."], ["he", "'s", "qqq", "."]
    assert corpus.examples[:3] == [
        Example("train", 0, man, qqq),
        Example("train", 2, man, man),
        Example("train", 1, ["nobody", "sits", "."], qqq),
    ]
    assert [example.split for example in corpus.examples] == ["train"] * 3 + ["dev"] * 3 + ["test"] * 3


def test_a_sentence_is_cleaned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def clean(texts: list[str]) -> list[list[str]]:
        seen.extend(texts)
        return [text.split() for text in texts]

    monkeypatch.setattr("plumbline.data.datasets.snli.clean", clean)
    write(tmp_path)
    snli(tmp_path, 0)
    assert seen == ["A man  sits.", "He's 40.", "A man sits.", "Nobody sits."]


def test_cased_words_are_as_they_stand(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    write(tmp_path)
    corpus = snli(tmp_path, 0, tokens="cased")
    assert corpus.dropped == {"no agreed label": {"train": 1, "dev": 1, "test": 1}}
    man, forty = ["A", "man", "sits", "."], ["He", "'s", "40", "."]
    assert corpus.examples[:3] == [
        Example("train", 0, man, forty),
        Example("train", 2, man, man),
        Example("train", 1, ["Nobody", "sits", "."], forty),
    ]
    # A sentence that stands in many pairs is held once.
    assert corpus.examples[0].pair is corpus.examples[2].pair


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        ('{"gold_label": "neutral", "sentence1": "A', "is not a JSON object with gold_label, sentence1 and sentence2"),
        ('{"gold_label": "neutral"}', "is not a JSON object with gold_label, sentence1 and sentence2"),
        ("[1]", "is not a JSON object with gold_label, sentence1 and sentence2"),
        (line("maybe"), "has the label 'maybe', which is not one of neutral, contradiction, entailment and -"),
    ],
)
def test_malformed_lines_are_named(tmp_path: Path, bad: str, fault: str) -> None:
    path = write(tmp_path, [*LINES, bad])
    with pytest.raises(PlumblineError) as caught:
        snli(tmp_path, 0)
    assert str(caught.value) == f"'{path}', line 5 {fault}: download the file again."


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"needs the files 'snli/snli_1\.0/snli_1\.0_train\.jsonl', "):
        snli(tmp_path, 0)


def test_declared_recipes() -> None:
    declaration = Registry().get("dataset", "snli")
    recipe, training = Preparation(**declaration.preparation), Training(**PAIRED_TRAINING | declaration.training)
    assert declaration.task == "inference"
    assert (recipe.minimum_document_frequency, recipe.embedding.path) == (3, "vectors/glove.840B.300d.txt")
    assert (training.epochs, training.batch_size, training.reduction, training.no_decay) == (25, 128, "mean", [])


def test_declared_recipes_of_the_cased_pairs() -> None:
    declaration, cleaned = (Registry().get("dataset", name) for name in ("snli-cased", "snli"))
    assert (declaration.task, declaration.counts, declaration.files) == (cleaned.task, cleaned.counts, cleaned.files)
    recipe = Preparation(**declaration.preparation)
    assert (recipe.minimum_document_frequency, recipe.vocabulary_of) == (1, "all")
    assert (recipe.embedding.path, recipe.embedding.missing) == ("vectors/wiki-news-300d-1M.vec", "like-found")
    assert (declaration.training, declaration.subword_training) == (
        ({"batch_size": 64}, {"batch_size": 64, "learning_rate": 2e-5})
    )
    assert (declaration.options["tokens"].default, cleaned.options["tokens"].default) == ("cased", "cleaned")
