"""MultiNLI and the English part of XNLI, on lines written in their forms."""

import json
from pathlib import Path

import pytest

from plumbline.config.recipes import Preparation
from plumbline.data.corpus import Example
from plumbline.data.datasets.mnli import mnli, read_english
from plumbline.data.datasets.snli import Pair
from plumbline.data.prepare import prepare
from plumbline.errors import PlumblineError
from plumbline.registry import Registry

# The header of XNLI's files and a row of theirs, whose parses are empty.
HEADER = (
    "language gold_label sentence1_binary_parse sentence2_binary_parse sentence1_parse sentence2_parse sentence1 "
    "sentence2 promptID pairID genre label1 label2 label3 label4 label5 sentence1_tokenized sentence2_tokenized match"
).replace(" ", "\t")


def row(language: str, label: str, premise: str, hypothesis: str) -> str:
    votes = [label] * 5
    lowercase = [premise.lower(), hypothesis.lower()]
    return "\t".join(
        [language, label, "", "", "", "", premise, hypothesis, "2", "4", "facetoface", *votes, *lowercase, "True"]
    )


ROWS = [
    row("ar", "contradiction", "\u062d\u0633\u0646\u0627", "\u0644\u0627"),
    row("en", "contradiction", 'He said, "Well', "Nobody spoke."),
    row("en", "neutral", "He said it.", 'She "heard" it.'),
    row("zh", "entailment", "\u597d", "\u597d"),
    row("en", "entailment", "I wasn't there.", "Not there."),
]


def pair(label: str, premise: str, hypothesis: str) -> str:
    rest = {"annotator_labels": [label], "genre": "telephone", "pairID": "1n", "promptID": "1"}
    return json.dumps({**rest, "gold_label": label, "sentence1": premise, "sentence2": hypothesis})


LABELS = ("neutral", "contradiction", "entailment")


def write(raw: Path, rows: list[str] = ROWS, header: str = HEADER) -> Path:
    folder = raw / "mnli/multinli_1.0"
    folder.mkdir(parents=True)
    lines = [pair(label, "The Old One!", f"It's {label}.") for label in LABELS]
    (folder / "multinli_1.0_train.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "multinli_1.0_dev_matched.jsonl").write_text(
        "\n".join([*lines, pair("-", "What", "No")]), encoding="utf-8"
    )
    test = raw / "xnli/XNLI-1.0/xnli.test.tsv"
    test.parent.mkdir(parents=True)
    test.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return test


def test_splits_labels_and_words(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    write(tmp_path)
    corpus = mnli(tmp_path, 0)
    assert corpus.classes == ["neutral", "contradiction", "entailment"]
    assert corpus.dropped == {"no agreed label": {"dev": 1}}
    assert [(e.split, e.label) for e in corpus.examples] == [
        (split, label) for split in ("train", "dev", "test") for label in ((1, 0, 2) if split == "test" else (0, 1, 2))
    ]
    assert corpus.examples[0] == Example("train", 0, ["The", "Old", "One", "!"], ["It", "'s", "neutral", "."])
    assert corpus.examples[-1] == Example("test", 2, ["I", "was", "n't", "there", "."], ["Not", "there", "."])


def test_english_rows_keep_their_quotation_marks_wherever_the_columns_stand(tmp_path: Path) -> None:
    expected = [
        ("test", Pair("contradiction", 'He said, "Well', "Nobody spoke.")),
        ("test", Pair("neutral", "He said it.", 'She "heard" it.')),
        ("test", Pair("entailment", "I wasn't there.", "Not there.")),
    ]
    path = write(tmp_path)
    assert list(read_english(path)) == expected
    turned = ["\t".join(line.split("\t")[::-1]) for line in [HEADER, *ROWS]]
    path.write_text("\r\n".join(turned), encoding="utf-8")
    assert list(read_english(path)) == expected


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        ("en\tneutral\ttruncated", "has 3 of 19 columns"),
        (row("en", "-1", "A", "B"), "has the label '-1', which is not one of neutral, contradiction, entailment and -"),
    ],
)
def test_malformed_rows_are_named(tmp_path: Path, bad: str, fault: str) -> None:
    path = write(tmp_path, [*ROWS, bad])
    with pytest.raises(PlumblineError) as caught:
        mnli(tmp_path, 0)
    assert str(caught.value) == f"'{path}', line 7 {fault}: download the file again."


@pytest.mark.parametrize("header", ["", HEADER.replace("language", "tongue")])
def test_another_header_is_refused(tmp_path: Path, header: str) -> None:
    path = write(tmp_path, ROWS, header)
    with pytest.raises(PlumblineError) as caught:
        mnli(tmp_path, 0)
    assert str(caught.value) == (
        f"'{path}' does not start with the columns language, gold_label, sentence1, sentence2: download the file again."
    )


def test_malformed_lines_of_multinli_are_named(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / "mnli/multinli_1.0/multinli_1.0_dev_matched.jsonl"
    path.write_text(path.read_text() + '\n{"gold_label": "neu')
    with pytest.raises(
        PlumblineError, match=r"dev_matched\.jsonl', line 5 is not a JSON object with gold_label, sentence1"
    ):
        mnli(tmp_path, 0)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        PlumblineError, match=r"needs the files 'mnli/multinli_1\.0/multinli_1\.0_train\.jsonl', .*xnli"
    ):
        mnli(tmp_path, 0)


def test_declared_recipes(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    write(tmp_path)
    declaration = Registry().get("dataset", "mnli")
    recipe = Preparation(**declaration.preparation)
    found = prepare(mnli(tmp_path, 0), recipe, "mnli", declaration.counts, declaration.task)
    assert found.summary["partial"] == {
        "train": {"texts": 3, "published": 392702},
        "dev": {"texts": 3, "published": 9815},
        "test": {"texts": 3, "published": 5010},
    }
    assert "Nobody" in found.words, "words of the test split are known"
    assert (recipe.embedding.path, recipe.embedding.missing) == ("vectors/wiki-news-300d-1M.vec", "like-found")
    assert declaration.training == {"batch_size": 512}
    assert declaration.subword_training == {"batch_size": 32, "learning_rate": 2e-5}
