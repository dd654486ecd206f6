"""Generated film reviews with articles in both halves and sentiment words, most of which are of the class."""

from pathlib import Path

import numpy as np

from plumbline.data.corpus import Corpus, Example, split_generators
from plumbline.registry import dataset

# A name in capitals is replaced by one of its words; A becomes `a` or `an`.
OPENINGS = [
    "the THING was DEGREE JUDGEMENT from beginning to end .",
    "i found the THING DEGREE JUDGEMENT .",
    "this is A JUDGEMENT THING , i think .",
    "we saw the film WHEN and found it JUDGEMENT .",
    "with A PLAIN THING like this , it felt JUDGEMENT .",
]
MIDDLES = [
    "my friends found it JUDGEMENT too .",
    "its THING is JUDGEMENT and its THING is JUDGEMENT .",
    "we had heard of it before and talked about it WHEN .",
    "it takes two hours , and most of them are JUDGEMENT .",
    "A PLAIN THING comes and goes .",
    "nobody around us said much about its THING .",
    "some of it , like the THING , is DEGREE JUDGEMENT .",
]
CLOSINGS = [
    "all in all it is A JUDGEMENT film .",
    "in short , JUDGEMENT work by the MAKER .",
    "so we had A JUDGEMENT evening .",
    "for me it was DEGREE JUDGEMENT because of the THING .",
    "that is how JUDGEMENT A film can be .",
]
WORDS = {
    "THING": ["acting", "camera", "dialogue", "ending", "image", "music", "opening", "plot", "scene", "story"],
    "PLAIN": ["early", "familiar", "foreign", "large", "late", "old", "quiet", "short", "small", "usual"],
    "DEGREE": ["quite", "rather", "really", "simply", "truly", "very"],
    "WHEN": ["recently", "today", "tonight", "yesterday"],
    "MAKER": ["author", "cast", "crew", "director", "editor"],
}
JUDGEMENTS = (
    ["annoying", "awful", "boring", "clumsy", "dreadful", "empty", "irritating", "lifeless", "stupid", "ugly"],
    ["amazing", "beautiful", "brilliant", "clever", "delightful", "elegant", "inspired", "lovely", "moving", "witty"],
)
LONGEST, LONGEST_SENTENCE = 40, 12


@dataset(
    "reviews",
    source="plumbline itself, which generates it",
    licence="MIT",
    preparation={"embedding": {"kind": "random", "dimensions": 50, "trainable": False}},
)
def reviews(raw: Path, seed: int, *, train: int = 2000, dev: int = 500, test: int = 500) -> Corpus:
    """Short film reviews, good or bad by the majority of their sentiment words; half of each class.

    A review has an opening, optional further sentences and a closing, 14 to 40 tokens in all. Opening and closing have
    an article each.
    """
    examples = []
    for split, size, generator in split_generators(seed, train, dev, test):
        for label in generator.permutation(np.arange(size) % 2).tolist():
            examples.append(Example(split, label, _review(generator, label)))
    return Corpus(examples, ["bad", "good"], vocabulary=_vocabulary())


def _draw(generator: np.random.Generator, options: list[str]) -> str:
    return options[generator.integers(len(options))]


def _review(generator: np.random.Generator, label: int) -> list[str]:
    """The words of a review: sentences, then sentiment words in their slots."""
    opening, closing = (_draw(generator, sentences).split() for sentences in (OPENINGS, CLOSINGS))
    room = int(generator.integers(LONGEST - LONGEST_SENTENCE + 2))
    words = list(opening)
    while len(words) + len(closing) < room:
        words += _draw(generator, MIDDLES).split()
    words += closing
    slots = words.count("JUDGEMENT")
    contrary = set(generator.permutation(slots)[: generator.integers((slots - 1) // 2 + 1)].tolist())
    judgements = iter(_draw(generator, JUDGEMENTS[label != (slot in contrary)]) for slot in range(slots))
    filled: list[str] = []
    for word in words:
        if word == "JUDGEMENT":
            filled.append(next(judgements))
        else:
            filled.append(_draw(generator, WORDS[word]) if word in WORDS else word)
    # `a` or `an` depends on the word that follows.
    following = [*filled[1:], "."]
    return [
        ("an" if after[0] in "aeiou" else "a") if word == "A" else word
        for word, after in zip(filled, following, strict=True)
    ]


def _vocabulary() -> list[str]:
    """Every word that may occur in a review."""
    lists = [*WORDS.values(), *JUDGEMENTS, *([sentence] for sentence in (*OPENINGS, *MIDDLES, *CLOSINGS))]
    words = {word for phrases in lists for phrase in phrases for word in phrase.split()}
    return sorted(words - {*WORDS, "JUDGEMENT", "A"} | {"a", "an"})
