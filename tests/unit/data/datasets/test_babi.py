"""bAbI, on stories written in its form."""

from pathlib import Path

import pytest

from plumbline.config.recipes import PAIRED_TRAINING, Preparation, Training
from plumbline.data.datasets.babi import babi, read_questions
from plumbline.errors import PlumblineError
from plumbline.registry import Registry

FOLDER = "babi/tasks_1-20_v1-2/en-10k"
NAMES = ["qa1_single-supporting-fact", "qa2_two-supporting-facts", "qa3_three-supporting-facts"]
STORY = [
    "1 Mary moved to the hall.",
    "2 John went to the attic.",
    "3 Where is Mary? \thall\t1",
    "4 Mary took the milk there.",
    "5 Where is the milk? \thall\t4 1",
    "1 John left.",
    "2 Where is John? \tattic\t1",
]


def write(raw: Path, lines: list[str] = STORY) -> Path:
    (raw / FOLDER).mkdir(parents=True)
    for name in NAMES:
        for split in ("train", "test"):
            (raw / FOLDER / f"{name}_{split}.txt").write_text("\n".join(lines) + "\n")
    return raw / FOLDER / f"{NAMES[0]}_train.txt"


def test_stories_by_hand(tmp_path: Path) -> None:
    first, second, third = read_questions(write(tmp_path))
    mary, john = ["Mary", "moved", "to", "the", "hall"], ["John", "went", "to", "the", "attic"]
    milk = ["Mary", "took", "the", "milk", "there"]
    assert first == ([*mary, ".", *john], ["Where", "is", "Mary"], "hall", [True] * 5 + [False] * 6)
    assert second.story == [*mary, ".", *john, ".", *milk]
    assert (second.question, second.answer) == (["Where", "is", "the", "milk"], "hall")
    assert second.evidence == [True] * 5 + [False] * 7 + [True] * 5
    assert third == (["John", "left"], ["Where", "is", "John"], "attic", [True, True])


def test_classes_are_the_words_of_the_three_training_files(tmp_path: Path) -> None:
    write(tmp_path)
    corpus = babi(tmp_path, 0)
    words = {word for line in STORY for word in line.split("\t")[0].rstrip(" ?.").split(" ")[1:]}
    assert corpus.classes == corpus.vocabulary == sorted(words | {"."})
    assert corpus.every_class is False
    assert all(example.answers is None for example in corpus.examples)
    assert [corpus.classes[example.label] for example in corpus.examples] == ["hall", "hall", "attic"] * 2
    assert [example.split for example in corpus.examples] == ["dev", "train", "train", "test", "test", "test"]
    assert corpus.examples[0].pair == ["Where", "is", "Mary"]


def test_tasks_read_their_own_files(tmp_path: Path) -> None:
    write(tmp_path)
    for task, name in enumerate(NAMES, 1):
        lines = [f"1 Word{task} left.", f"2 Who left? \tWord{task}\t1"] * 7
        (tmp_path / FOLDER / f"{name}_train.txt").write_text("\n".join(lines))
        (tmp_path / FOLDER / f"{name}_test.txt").write_text("\n".join(lines[:2]))
    for task in (1, 2, 3):
        declaration = Registry().get("dataset", f"babi-{task}")
        presets = {key: option.default for key, option in declaration.options.items()}
        assert presets == {"number": task}
        corpus = babi(tmp_path, 0, **presets)
        assert corpus.classes == ["Who", "Word1", "Word2", "Word3", "left"]
        assert {corpus.classes[example.label] for example in corpus.examples} == {f"Word{task}"}
        assert [example.split for example in corpus.examples] == [
            "train", "train", "dev", "train", "train", "dev", "train", "test",
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (
            "Mary moved.",
            " is neither a numbered sentence nor a question, answer and supporting sentences with tabs between them: "
            "download the file again.",
        ),
        (
            "2 Where is John? \tattic",
            " is neither a numbered sentence nor a question, answer and supporting sentences with tabs between them: "
            "download the file again.",
        ),
        ("3 Where is John? \tattic\t1 9", ": no sentence before it has number 9; download the file again."),
    ],
)
def test_malformed_lines_are_named(tmp_path: Path, line: str, fault: str) -> None:
    path = write(tmp_path, [*STORY, line])
    with pytest.raises(PlumblineError) as caught:
        babi(tmp_path, 0)
    assert str(caught.value) == f"'{path}', line 8{fault}"


def test_an_answer_must_be_a_training_word(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / FOLDER / f"{NAMES[0]}_test.txt"
    path.write_text("1 Mary flew.\n2 Where is Mary? \tmoon\t1\n")
    with pytest.raises(PlumblineError) as caught:
        babi(tmp_path, 0)
    assert str(caught.value) == f"'{path}': no training story contains the answer 'moon'; download the files again."


def test_only_the_test_file_of_the_task_is_needed(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / FOLDER / f"{NAMES[1]}_test.txt").unlink()
    babi(tmp_path, 0, number=3)
    with pytest.raises(PlumblineError, match=r"Dataset 'babi-2' needs the file 'babi/.*qa2_two-supporting-facts_test"):
        babi(tmp_path, 0, number=2)


def test_declared_recipes() -> None:
    for name in ("babi-1", "babi-2", "babi-3"):
        declaration = Registry().get("dataset", name)
        recipe, training = Preparation(**declaration.preparation), Training(**PAIRED_TRAINING | declaration.training)
        assert declaration.task == "question answering"
        assert (recipe.embedding.kind, recipe.embedding.dimensions) == ("random", 50)
        assert (training.epochs, training.batch_size, training.select_by) == (100, 50, "accuracy")
        assert declaration.counts == {"train": 8500, "dev": 1500, "test": 1000}
