"""How much each group measures: on a CPU, on a GPU, and in the smoke tests."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple


class Subset(NamedTuple):
    """Texts that are explained, and how many of them the plain way is timed on."""

    texts: int
    timed: int


class Long(NamedTuple):
    """Long texts, all of so many words."""

    texts: int
    words: int


class Limit(NamedTuple):
    """Instances that are explained together, fewer if their samples would be more rows than this."""

    instances: int
    rows: int


class Block(NamedTuple):
    """Seeds, and the texts that they are trained on."""

    seeds: int
    texts: int


@dataclass(frozen=True)
class Sizes:
    """All sizes on one device. The models, and the lengths of texts that are not said here, are always the same."""

    turns: int  # each way is timed at most so often; the fastest turn counts
    patience: float  # seconds of a row of `every` after which no new turn begins
    samples: int  # at most so many samples, steps, draws or permutations per explanation
    lime: int  # samples of LIME where it is compared with Captum's
    pairs: Mapping[int, int]  # Kendall's tau: pairs of vectors by their length
    compared: int  # Kendall's tau: texts on which eight measures are compared
    flows: Mapping[int, int]  # attention flow: turns by tokens of the text
    measures: int  # texts of leave-one-out and gradients
    reviews: Long  # of leave-one-out
    attribution: Subset
    counterfactual: Subset
    every_texts: Limit
    every_pictures: Limit
    every_timed: int  # instances that the plain way of `every` is timed on
    side: int  # pixels of a picture's row
    counted: int  # training texts in which words are counted
    training: Block
    adversary: Block
    memory: Long  # of the peak memory
    budgets: tuple[int, ...]  # tokens of a pass, whose peak memory is compared


GPU = Sizes(
    turns=3,
    patience=6.0,
    samples=1000,
    lime=1000,
    pairs={20: 5000, 100: 2000, 400: 500},
    compared=100,
    flows={20: 3, 30: 3, 40: 1, 60: 1},
    measures=100,
    reviews=Long(texts=4, words=180),
    attribution=Subset(texts=500, timed=10),
    counterfactual=Subset(texts=1000, timed=8),
    every_texts=Limit(instances=500, rows=500_000),
    every_pictures=Limit(instances=256, rows=51_200),
    every_timed=4,
    side=64,
    counted=6400,
    training=Block(seeds=5, texts=6400),
    adversary=Block(seeds=9, texts=6400),
    memory=Long(texts=8, words=400),
    budgets=(16_384, 262_144),
)
# All groups together take less than ten minutes.
CPU = replace(
    GPU,
    patience=3.0,
    pairs={20: 2000, 100: 1000, 400: 500},
    flows={20: 3, 30: 1, 40: 1, 60: 1},
    measures=40,
    reviews=Long(texts=2, words=180),
    attribution=Subset(texts=30, timed=3),
    counterfactual=Subset(texts=200, timed=4),
    every_texts=Limit(instances=50, rows=500),
    every_pictures=Limit(instances=8, rows=400),
    training=Block(seeds=5, texts=800),
    adversary=Block(seeds=9, texts=256),
    budgets=(4096, 16_384),
)
SMALLEST = Sizes(
    turns=1,
    patience=3.0,
    samples=4,
    lime=100,
    pairs={20: 3, 400: 2},
    compared=2,
    flows={5: 1, 8: 1},
    measures=3,
    reviews=Long(texts=1, words=70),
    attribution=Subset(texts=4, timed=2),
    counterfactual=Subset(texts=4, timed=2),
    every_texts=Limit(instances=4, rows=400),
    every_pictures=Limit(instances=4, rows=400),
    every_timed=2,
    side=32,
    counted=8,
    training=Block(seeds=1, texts=64),
    adversary=Block(seeds=1, texts=64),
    memory=Long(texts=1, words=70),
    budgets=(4096,),
)
USUAL = {"cpu": CPU, "cuda": GPU}
# On a GPU seeds train side by side.
SIDE_BY_SIDE = Block(seeds=2, texts=64)
TINY = {"cpu": SMALLEST, "cuda": replace(SMALLEST, training=SIDE_BY_SIDE, adversary=SIDE_BY_SIDE)}
