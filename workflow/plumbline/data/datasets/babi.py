"""Questions about short stories, bAbI tasks 1 to 3 (Weston et al. 2015), as in Jain & Wallace (2019)."""

from pathlib import Path
from typing import Literal, NamedTuple

from plumbline.data.corpus import Corpus, Example, draw_dev
from plumbline.data.sources import declared_files, read_lines
from plumbline.errors import PlumblineError
from plumbline.registry import dataset

STOP = "."


class StoryQuestion(NamedTuple):
    """A question about the sentences before it, and flags of the words of the supporting ones."""

    story: list[str]
    question: list[str]
    answer: str
    evidence: list[bool]


def join_sentences(sentences: dict[int, list[str]], supporting: set[int]) -> tuple[list[str], list[bool]]:
    """The words of numbered sentences with full stops between them, and flags of the supporting sentences' words."""
    story: list[str] = []
    evidence: list[bool] = []
    for number, words in sentences.items():
        if story:
            story.append(STOP)
            evidence.append(False)
        story += words
        evidence += [number in supporting] * len(words)
    return story, evidence


def read_questions(path: Path) -> list[StoryQuestion]:
    """All questions of a file with the story so far, which does not include earlier questions."""
    questions = []
    sentences: dict[int, list[str]] = {}
    for number, line in read_lines(path):
        try:
            index, text = line.split(" ", 1)
            if int(index) == 1:
                sentences = {}
            if "\t" not in text:
                sentences[int(index)] = text.strip().removesuffix(".").split()
                continue
            question, answer, facts = (part.strip() for part in text.split("\t"))
            supporting = {int(fact) for fact in facts.split()}
        except ValueError:
            raise PlumblineError(
                f"'{path}', line {number} is neither a numbered sentence nor a question, answer and supporting "
                "sentences with tabs between them: download the file again."
            ) from None
        if not supporting <= set(sentences):
            missing = min(supporting - set(sentences))
            raise PlumblineError(
                f"'{path}', line {number}: no sentence before it has number {missing}; download the file again."
            )
        story, evidence = join_sentences(sentences, supporting)
        questions.append(StoryQuestion(story, question.removesuffix("?").split(), answer, evidence))
    return questions


@dataset("babi-3", number=3)
@dataset("babi-2", number=2)
@dataset(
    "babi-1",
    number=1,
    files={
        "train-1": "babi/tasks_1-20_v1-2/en-10k/qa1_single-supporting-fact_train.txt",
        "train-2": "babi/tasks_1-20_v1-2/en-10k/qa2_two-supporting-facts_train.txt",
        "train-3": "babi/tasks_1-20_v1-2/en-10k/qa3_three-supporting-facts_train.txt",
        "number=1:test": "babi/tasks_1-20_v1-2/en-10k/qa1_single-supporting-fact_test.txt",
        "number=2:test": "babi/tasks_1-20_v1-2/en-10k/qa2_two-supporting-facts_test.txt",
        "number=3:test": "babi/tasks_1-20_v1-2/en-10k/qa3_three-supporting-facts_test.txt",
    },
    source="https://research.facebook.com/downloads/babi/ (tasks_1-20_v1-2.tar.gz)",
    licence="CC BY 3.0",
    task="question answering",
    evidence="rule",
    counts={"train": 8500, "dev": 1500, "test": 1000},
    preparation={"embedding": {"kind": "random", "dimensions": 50}},
    training={"epochs": 100, "batch_size": 50},
    subword_training={"epochs": 8},
    model_options={"output=softmax:hidden": 32},
)
def babi(raw: Path, seed: int, *, number: Literal[1, 2, 3] = 1) -> Corpus:
    """Questions that one, two or three sentences of a story answer; these sentences are the `evidence`.

    The classes are all words of the training files of the three tasks. Dev is the study's 15% of the training file, so
    `seed` has no effect.

    Options:
        number: Number of the task, which is the number of sentences that answer the question.
    """
    training = [f"train-{task}" for task in (1, 2, 3)]
    paths = declared_files(__file__, f"babi-{number}", raw, [*training, f"number={number}:test"])
    questions = {key: read_questions(path) for key, path in paths.items()}
    words = {word for key in training for row in questions[key] for word in (*row.story, *row.question)}
    classes = {word: label for label, word in enumerate(sorted(words))}
    examples = []
    for split, key in (("train", f"train-{number}"), ("test", f"number={number}:test")):
        for story, question, answer, evidence in questions[key]:
            if answer not in classes:
                raise PlumblineError(
                    f"'{paths[key]}': no training story contains the answer '{answer}'; download the files again."
                )
            examples.append(Example(split, classes[answer], story, question, evidence=evidence))
    return Corpus(draw_dev(examples), list(classes), vocabulary=list(classes), every_class=False)
