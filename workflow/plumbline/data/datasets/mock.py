"""Mock data of AtteFa: filler, and a known number of sentiment words at random positions."""

from pathlib import Path
from typing import Literal

import numpy as np

from plumbline.data.corpus import Corpus, Example, split_generators
from plumbline.data.sources import declared_files, read_lines
from plumbline.errors import PlumblineError
from plumbline.registry import dataset

FILLER = "something"


@dataset("mock-4q", share=1.0)
@dataset("mock-3q", share=0.75)
@dataset("mock-2q", share=0.5)
@dataset("mock-1q", share=0.25)
@dataset("mock-10", informative=10)
@dataset("mock-5", informative=5)
@dataset("mock-2", informative=2)
@dataset(
    "mock-1",
    informative=1,
    files={
        "words=vader:lexicon": "vader/vader_lexicon.txt",
        "words=opinion-lexicon:positive": "opinion_lexicon/positive-words.txt",
        "words=opinion-lexicon:negative": "opinion_lexicon/negative-words.txt",
    },
    source="the Python package vaderSentiment 3.3.2 (vader_lexicon.txt; `plumbline.data.fetch` fetches it) or "
    "https://www.cs.uic.edu/~liub/FBS/sentiment-analysis.html (opinion lexicon)",
    licence="MIT (VADER), CC BY 4.0 (opinion lexicon)",
    preparation={"embedding": {"kind": "random", "dimensions": 100}},
)
def mock(
    raw: Path,
    seed: int,
    *,
    informative: int = 0,
    share: float = 0.0,
    train: int = 8000,
    dev: int = 1000,
    test: int = 1000,
    shortest: int = 50,
    longest: int = 100,
    words: Literal["vader", "opinion-lexicon"] = "vader",
    vocabulary: Literal["full-lists", "training"] = "full-lists",
    position: Literal["any", "start", "middle", "end"] = "any",
    strength: Literal["any", "weak", "strong"] = "any",
) -> Corpus:
    """Texts of the filler `something` and of words of one sentiment, which is the class; half the texts per class.

    Options:
        informative: Number of sentiment words of a text; 0 if `share` sets it.
        share: Share of a text's words that are sentiment words, 0 to 1; 0 if `informative` sets their number.
        shortest: Least number of words of a text.
        longest: Greatest number of words of a text.
        words: Lexicon of the sentiment words; the study uses the opinion lexicon.
        vocabulary: Words of the vocabulary: all of the lexicon, or only those of training texts.
        position: Part of a text that holds the sentiment words: any, or its first, middle or last third, longer if they
            need it.
        strength: Words of any absolute valence, or of one below (`weak`) or not below (`strong`) the median of their
            class; only VADER has valences.
    """
    _check(informative, share, shortest, longest)
    if strength != "any" and words != "vader":
        raise PlumblineError(f"`strength` is {strength}, but the words of `{words}` have no valence; set it to any.")
    lists = vader_words(raw, strength) if words == "vader" else opinion_words(raw)
    examples = []
    for split, size, generator in split_generators(seed, train, dev, test):
        for label in generator.permutation(np.arange(size) % 2).tolist():
            length = int(generator.integers(shortest, longest, endpoint=True))
            count = informative or max(1, int(share * length + 0.5))
            examples.append(Example(split, label, _text(generator, lists[label], length, count, position)))
    full = [*lists[0], *lists[1], FILLER]
    return Corpus(examples, ["negative", "positive"], vocabulary=full if vocabulary == "full-lists" else None)


def _check(informative: int, share: float, shortest: int, longest: int) -> None:
    if not 1 <= shortest <= longest:
        raise PlumblineError(
            f"`shortest` is {shortest} and `longest` is {longest}; texts need 1 <= shortest <= longest."
        )
    if informative < 0 or not 0 <= share <= 1 or (informative == 0) == (share == 0):
        raise PlumblineError(
            f"`informative` is {informative} and `share` is {share:g}; set either `informative`, the number of "
            "informative words, or `share`, above 0 and up to 1, and the other to 0."
        )
    if informative > shortest:
        raise PlumblineError(
            f"`informative` is {informative}, but the shortest texts have only {shortest} words; lower it or raise "
            "`shortest`."
        )


def _text(generator: np.random.Generator, pool: list[str], length: int, count: int, position: str) -> list[str]:
    """A text with `count` words of the pool, drawn with replacement, at random positions of the chosen part."""
    tokens = [FILLER] * length
    room = length if position == "any" else max(count, length // 3)
    first = {"any": 0, "start": 0, "middle": (length - room) // 2, "end": length - room}[position]
    positions = first + generator.choice(room, count, replace=False)
    for i, word in zip(positions, generator.integers(len(pool), size=count), strict=True):
        tokens[i] = pool[word]
    return tokens


def vader_words(raw: Path, strength: str = "any") -> tuple[list[str], list[str]]:
    """The negative and the positive words of the VADER lexicon by mean valence; words of letters only."""
    (path,) = declared_files(__file__, "mock-1", raw, ["words=vader:lexicon"]).values()
    valences: tuple[dict[str, float], dict[str, float]] = ({}, {})
    for number, line in read_lines(path):
        word, _, rest = line.partition("\t")
        try:
            valence = float(rest.split("\t")[0])
        except ValueError:
            raise PlumblineError(
                f"'{path}', line {number}: no valence follows '{word}'; download the file again."
            ) from None
        if word.isalpha() and valence != 0:
            # Some words occur in lower and upper case; the first counts.
            valences[valence > 0].setdefault(word.lower(), abs(valence))
    negative, positive = (_select_strength(words, strength) for words in valences)
    return _nonempty((negative, positive), path, path, strength=strength)


def _select_strength(valences: dict[str, float], strength: str) -> list[str]:
    """All words, or those with a valence below the median (weak), or the others (strong)."""
    if strength == "any":
        return [*valences]
    median = np.median([*valences.values()])
    return [word for word, valence in valences.items() if (valence < median) == (strength == "weak")]


def opinion_words(raw: Path) -> tuple[list[str], list[str]]:
    """The negative and the positive words of the opinion lexicon of Hu & Liu (2004)."""
    paths = declared_files(
        __file__, "mock-1", raw, ["words=opinion-lexicon:negative", "words=opinion-lexicon:positive"]
    )
    negative, positive = (
        [line.strip().lower() for _, line in read_lines(path, "latin-1") if not line.startswith(";")]
        for path in paths.values()
    )
    return _nonempty((negative, positive), *paths.values())


def _nonempty(lists: tuple[list[str], list[str]], *paths: Path, strength: str = "any") -> tuple[list[str], list[str]]:
    for kind, words, path in zip(("negative", "positive"), lists, paths, strict=True):
        if not words:
            named = kind if strength == "any" else f"{strength} {kind}"
            raise PlumblineError(f"'{path}' contains no {named} word; download the file again.")
    return lists
