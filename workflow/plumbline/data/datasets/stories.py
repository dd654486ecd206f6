"""Generated stories like bAbI task 1: people go from place to place, and one sentence holds the answer."""

from pathlib import Path

import numpy as np

from plumbline.data.corpus import Corpus, Example, split_generators
from plumbline.data.datasets.babi import STOP, join_sentences
from plumbline.errors import PlumblineError
from plumbline.registry import dataset

PEOPLE = ["Anna", "Ben", "Clara", "David", "Emma", "Felix", "Greta", "Hugo"]
PLACES = ["attic", "bakery", "cellar", "garden", "harbour", "kitchen", "library", "market", "office", "station"]
VERBS = ["went", "moved", "walked", "travelled"]


@dataset(
    "stories",
    limits={"people": [2, 8], "places": [2, 10]},
    source="plumbline itself, which generates it",
    licence="MIT",
    task="question answering",
    evidence="rule",
    preparation={"embedding": {"kind": "random", "dimensions": 50}},
    training={"epochs": 20, "batch_size": 50},
    model_options={"encoder=bilstm:hidden": 32, "encoder=cnn:hidden": 8, "encoder=average:hidden": 32},
)
def stories(
    raw: Path,
    seed: int,
    *,
    train: int = 4000,
    dev: int = 500,
    test: int = 500,
    people: int = 4,
    places: int = 6,
    shortest: int = 3,
    longest: int = 8,
) -> Corpus:
    """Stories of people who go from place to place, and a question where one of them is.

    The last sentence about that person holds the answer and is the `evidence`. The person is drawn from those in the
    story, so that the last place is rarely the answer.

    Options:
        people: Number of people that stories are about.
        places: Number of places, which are the classes.
        shortest: Least number of sentences of a story.
        longest: Greatest number of sentences of a story.
    """
    _check(people, places, shortest, longest)
    names, rooms = PEOPLE[:people], PLACES[:places]
    examples = []
    for split, size, generator in split_generators(seed, train, dev, test):
        examples += [_example(generator, split, names, rooms, shortest, longest) for _ in range(size)]
    vocabulary = [*names, *rooms, *VERBS, "to", "the", "Where", "is", STOP]
    return Corpus(examples, rooms, vocabulary=vocabulary, every_class=False)


def _check(people: int, places: int, shortest: int, longest: int) -> None:
    for option, value, known in (("people", people, PEOPLE), ("places", places, PLACES)):
        if not 2 <= value <= len(known):
            raise PlumblineError(f"`{option}` is {value}; it must be from 2 to {len(known)}.")
    if not 1 <= shortest <= longest:
        raise PlumblineError(
            f"`shortest` is {shortest} and `longest` is {longest}; stories need 1 <= shortest <= longest."
        )


def _example(
    generator: np.random.Generator, split: str, names: list[str], rooms: list[str], shortest: int, longest: int
) -> Example:
    sentences: dict[int, list[str]] = {}
    last: dict[str, tuple[int, str]] = {}
    for number in range(int(generator.integers(shortest, longest, endpoint=True))):
        name = names[generator.integers(len(names))]
        elsewhere = [room for room in rooms if name not in last or room != last[name][1]]
        room = elsewhere[generator.integers(len(elsewhere))]
        sentences[number] = [name, VERBS[generator.integers(len(VERBS))], "to", "the", room]
        last[name] = number, room
    person = sorted(last)[generator.integers(len(last))]
    number, room = last[person]
    story, evidence = join_sentences(sentences, {number})
    return Example(split, rooms.index(room), story, ["Where", "is", person], evidence=evidence)
