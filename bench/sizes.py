"""The sizes of each group of benchmarks: on a CPU, on a GPU, and in smoke tests."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple


class Subset(NamedTuple):
    """Texts that are explained, and how many of them the plain version is timed on."""

    texts: int
    timed: int


class Long(NamedTuple):
    """Long texts, all of the same number of words."""

    texts: int
    words: int


class Limit(NamedTuple):
    """Instances that are explained together, fewer if their samples would exceed this number of rows."""

    instances: int
    rows: int


class Block(NamedTuple):
    """Seeds, and the number of training texts."""

    seeds: int
    texts: int


@dataclass(frozen=True)
class Sizes:
    """All sizes on one device. Models, and other lengths of texts, are always the same."""

    turns: int  # the most timings of each version; the fastest counts
    patience: float  # seconds of a row of `every` after which no new turn begins
    samples: int  # the most samples, steps, draws or permutations per explanation
    lime: int  # samples of LIME in the comparison with Captum
    pairs: Mapping[int, int]  # Kendall's tau: pairs of vectors by their length
    compared: int  # Kendall's tau: texts on which eight measures are compared
    flows: Mapping[int, int]  # attention flow: turns by tokens of the text
    measures: int  # texts of leave-one-out and gradients
    reviews: Long  # of leave-one-out
    attribution: Subset
    counterfactual: Subset
    every_texts: Limit
    every_images: Limit
    every_timed: int  # instances that the plain version of `every` is timed on
    side: int  # pixels of an image's row
    counted: int  # training texts that are counted
    training: Block
    adversary: Block
    memory: Long  # of the peak memory
    budgets: tuple[int, ...]  # tokens per batch whose peak memory is compared


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
    every_images=Limit(instances=256, rows=51_200),
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
    every_images=Limit(instances=8, rows=400),
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
    every_images=Limit(instances=4, rows=400),
    every_timed=2,
    side=32,
    counted=8,
    training=Block(seeds=1, texts=64),
    adversary=Block(seeds=1, texts=64),
    memory=Long(texts=1, words=70),
    budgets=(4096,),
)
FULL = {"cpu": CPU, "cuda": GPU}
# On a GPU seeds train in parallel.
PARALLEL = Block(seeds=2, texts=64)
TINY = {"cpu": SMALLEST, "cuda": replace(SMALLEST, training=PARALLEL, adversary=PARALLEL)}
