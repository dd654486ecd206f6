"""Beer reviews with scores of several aspects, in the format of Lei et al. (2016), as in Zhou et al. (2022)."""

from collections import Counter
from pathlib import Path
from typing import Literal

import numpy as np

from plumbline.data.corpus import Corpus, Example
from plumbline.data.sources import declared_files, read_lines
from plumbline.errors import PlumblineError
from plumbline.registry import dataset
from plumbline.runtime.progress import shown

SCORES = 5
# One twelfth of each class is dev and one is test.
PARTS = 12
# The words of the negative and of the positive reviews.
Reviews = tuple[list[list[str]], list[list[str]]]


@dataset(
    "beer",
    files={
        "aspect=0:train": "beer/reviews.aspect0.train.txt",
        "aspect=1:train": "beer/reviews.aspect1.train.txt",
        "aspect=2:train": "beer/reviews.aspect2.train.txt",
    },
    source="Lei, Barzilay & Jaakkola (2016), http://people.csail.mit.edu/taolei/beer/ (reviews.aspect0.train.txt.gz, "
    "unpacked), or reviews of another site in the same form",
    licence="research use; the reviews are BeerAdvocate's",
    counts={"train": 10000, "dev": 1000, "test": 1000},
    preparation={
        "vocabulary_of": "all",
        "embedding": {
            "kind": "file",
            "path": "vectors/review+wiki.filtered.200.txt",
            "dimensions": 200,
            "missing": "uniform",
            "trainable": False,
        },
    },
)
def beer(
    raw: Path,
    seed: int,
    *,
    aspect: Literal[0, 1, 2] = 0,
    positive: list[float] = [0.9],  # noqa: B006 (options have literal defaults)
    negative: list[float] = [0.1, 0.2, 0.3],  # noqa: B006
    per_class: int = 6000,
    longest: int = 256,
) -> Corpus:
    """Reviews that score a beer's look (aspect 0), smell (1) or palate (2) high or low.

    Reviews are sampled by `seed`; ten twelfths are train, one is dev and one test. The file is already tokenized.

    Options:
        aspect: Scored aspect: 0 is look, 1 smell, 2 palate.
        positive: Scores, 0 to 1, of positive reviews; reviews with a score in neither list are left out.
        negative: Scores, 0 to 1, of negative reviews.
        per_class: Most reviews of each class, the same number of both.
        longest: Number of words that are kept of a review, from its start.
    """
    (path,) = declared_files(__file__, "beer", raw, [f"aspect={aspect}:train"]).values()
    label_of = {**dict.fromkeys(map(_cents, negative), 0), **dict.fromkeys(map(_cents, positive), 1)}
    reviews: Reviews = ([], [])
    others: Counter[int] = Counter()
    for number, line in shown(read_lines(path), "read", "review"):
        score, words = _parse(path, number, line, aspect)
        if score in label_of and words:
            reviews[label_of[score]].append(words[:longest])
        else:
            others[score] += 1
    _check(reviews, others, positive, negative, aspect, path)
    size = min(per_class, *map(len, reviews))
    examples = []
    for label, texts in enumerate(reviews):
        # A generator per class: the sample of one does not depend on the size of the other.
        drawn = np.random.default_rng([seed, label]).permutation(len(texts))[:size]
        held = max(1, size // PARTS)
        splits = ["dev"] * held + ["test"] * held + ["train"] * (size - 2 * held)
        examples += [Example(split, label, texts[k]) for k, split in sorted(zip(drawn, splits, strict=True))]
    dropped = {"other scores": {"all": others.total()}, "not drawn": {"all": sum(map(len, reviews)) - 2 * size}}
    return Corpus(examples, ["negative", "positive"], dropped={reason: n for reason, n in dropped.items() if n["all"]})


def _cents(score: float) -> int:
    """A score in hundredths, which can be compared exactly."""
    return round(100 * score)


def _parse(path: Path, number: int, line: str, aspect: int) -> tuple[int, list[str]]:
    """The score of an aspect, in hundredths, and the words of a line ``0.9 0.8 0.8 0.7 0.8 TAB words``."""
    scores, _, text = line.partition("\t")
    try:
        values = [float(score) for score in scores.split()]
    except ValueError:
        values = []
    if len(values) != SCORES or not all(0 <= value <= 1 for value in values):
        raise PlumblineError(
            f"'{path}', line {number} does not start with {SCORES} scores from 0 to 1 and a tab: download the file "
            "again."
        )
    return _cents(values[aspect]), text.split()


def _check(
    reviews: Reviews, others: Counter[int], positive: list[float], negative: list[float], aspect: int, path: Path
) -> None:
    """Refuse scores of both classes, and scores with too few reviews for three splits."""
    both = sorted(set(positive) & set(negative))
    if both:
        raise PlumblineError(f"The score {both[0]:g} is both in `positive` and in `negative`; remove it from one.")
    for option, scores, texts in (("negative", negative, reviews[0]), ("positive", positive, reviews[1])):
        if len(texts) < 3:
            rest = ", ".join(f"{score / 100:g} ({count})" for score, count in sorted(others.items()))
            raise PlumblineError(
                f"`{option}` lists the scores {', '.join(f'{score:g}' for score in scores)}, but only {len(texts)} "
                f"reviews of '{path}' have one of them for aspect {aspect}; add some of the other scores (number of "
                f"reviews): {rest}."
            )
