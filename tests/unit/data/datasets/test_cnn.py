"""CNN questions, on instances written in the form of Chen et al.'s files."""

from pathlib import Path

import pytest

from plumbline.config.recipes import PAIRED_TRAINING, Preparation, Training
from plumbline.data.corpus import Example
from plumbline.data.datasets.cnn import cnn
from plumbline.data.prepare import prepare
from plumbline.errors import PlumblineError
from plumbline.registry import Registry


def instance(question: str, answer: str, passage: str) -> str:
    return f"{question}\n{answer}\n{passage}\n@entity0:Ann Smith\n@entity1:Rome: a city\n\n"


FIRST = instance("@placeholder saw @entity1", "@entity0", "( @entity1 ) @entity0 saw @entity1 .")
SECOND = instance("who is @placeholder ?", "@entity7", "@entity7 is @entity0 , ann")
THIRD = instance("in @placeholder", "@entity9", "@entity7 in @entity9")


def write(raw: Path, train: str = FIRST + SECOND, dev: str = FIRST, test: str = SECOND + THIRD) -> Path:
    (raw / "cnn").mkdir()
    for split, text in (("train", train), ("dev", dev), ("test", test)):
        (raw / f"cnn/{split}.txt").write_text(text, encoding="utf-8")
    return raw / "cnn/train.txt"


def test_questions_articles_and_answers(tmp_path: Path) -> None:
    write(tmp_path)
    corpus = cnn(tmp_path, 0)
    assert corpus.classes == corpus.vocabulary == ["@entity1", "@entity0", "@entity7"]
    passage = ["(", "@entity1", ")", "@entity0", "saw", "@entity1", "."]
    first = (1, passage, ["@placeholder", "saw", "@entity1"], [0, 1])
    second = (2, ["@entity7", "is", "@entity0", ",", "ann"], ["who", "is", "@placeholder", "?"], [1, 2])
    assert corpus.examples == [
        Example("train", *first),
        Example("train", *second),
        Example("dev", *first),
        Example("test", *second),
    ]
    assert corpus.every_class is False
    # The training articles lack @entity9, so it is no class.
    assert corpus.dropped == {"answer not in the article": {"test": 1}}


def test_an_answer_that_the_article_lacks_is_left_out(tmp_path: Path) -> None:
    lacking = instance("@placeholder", "@entity7", "@entity0 slept")
    write(tmp_path, FIRST + lacking + SECOND)
    corpus = cnn(tmp_path, 0)
    assert corpus.dropped == {"answer not in the article": {"train": 1, "test": 1}}
    assert sum(example.split == "train" for example in corpus.examples) == 2


def test_all_entities_are_in_the_vocabulary(tmp_path: Path) -> None:
    write(tmp_path)
    prepared = prepare(cnn(tmp_path, 0), Preparation(minimum_document_frequency=2), "cnn")
    assert set(prepared.words[5:]) == {"@entity0", "@entity1", "@entity7", "@placeholder", "is", "saw"}


def test_the_last_instance_needs_no_blank_line(tmp_path: Path) -> None:
    write(tmp_path, FIRST + "\n\n" + "\n".join(SECOND.splitlines()[:3]))
    assert sum(example.split == "train" for example in cnn(tmp_path, 0).examples) == 2


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        ("@placeholder saw\n@entity0\n\n", "line 7: an instance has 2 of its 3 lines, question, answer and passage"),
        (instance("who saw", "@entity0", "@entity0"), "line 7: the question contains no @placeholder"),
        (instance("@placeholder", "ann", "@entity0"), "line 8: the answer is not one @entity"),
        (instance("@placeholder", "@entity0 @entity1", "@entity0"), "line 8: the answer is not one @entity"),
    ],
)
def test_malformed_instances_are_named(tmp_path: Path, bad: str, fault: str) -> None:
    path = write(tmp_path, FIRST + bad + SECOND)
    with pytest.raises(PlumblineError) as caught:
        cnn(tmp_path, 0)
    assert str(caught.value) == f"'{path}', {fault}; download the file again."


def test_damaged_and_missing_files(tmp_path: Path) -> None:
    write(tmp_path).write_bytes(FIRST.encode() + b"caf\xe9\n")
    with pytest.raises(PlumblineError, match=r"train\.txt', line 7 is not utf-8 text"):
        cnn(tmp_path, 0)
    (tmp_path / "cnn/dev.txt").unlink()
    with pytest.raises(PlumblineError, match=r"needs the file 'cnn/dev\.txt', which"):
        cnn(tmp_path, 0)


def test_declared_recipes() -> None:
    declaration = Registry().get("dataset", "cnn")
    recipe, training = Preparation(**declaration.preparation), Training(**PAIRED_TRAINING | declaration.training)
    assert declaration.task == "question answering"
    assert (recipe.minimum_document_frequency, recipe.embedding.path) == (8, "vectors/wiki.simple.vec")
    assert (training.epochs, training.batch_size) == (25, 90)
    assert declaration.counts == {"train": 380298, "dev": 3924, "test": 3198}
