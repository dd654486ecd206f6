"""Batched Kendall's tau against a loop over scipy.stats.kendalltau."""

from collections.abc import Iterator

import numpy as np
from scipy.stats import kendalltau
from timing import Row, compare

from plumbline.protocols.rank_statistics import kendall_tau

PAIRS_BY_LENGTH = {20: 5000, 100: 2000, 400: 500}


def rows() -> Iterator[Row]:
    """Pairs of vectors of several lengths, then all pairs of eight measures as a study compares them."""
    random = np.random.default_rng(0)
    for length, pairs in PAIRS_BY_LENGTH.items():
        scores = random.normal(size=(pairs, 2, length))
        yield compare(
            f"Kendall's tau and p, {pairs} pairs of length {length}",
            lambda scores=scores: [kendalltau(x, y) for x, y in scores],
            lambda scores=scores: kendall_tau(scores),
        )
    scores = random.normal(size=(100, 8, 100))
    yield compare(
        "Kendall's tau and p, 8 measures on 100 texts of 100 words",
        lambda: [kendalltau(text[a], text[b]) for text in scores for a in range(8) for b in range(a)],
        lambda: kendall_tau(scores),
    )
