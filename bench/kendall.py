"""Batched Kendall's tau, compared with a loop over scipy.stats.kendalltau."""

from collections.abc import Iterator

import numpy as np
from scipy.stats import kendalltau
from sizes import Sizes
from timing import Row, compare

from plumbline.protocols.agreement.rank_statistics import kendall_tau


def rows(sizes: Sizes) -> Iterator[Row]:
    """Pairs of vectors of several lengths, then all pairs of eight measures as a study compares them."""
    random = np.random.default_rng(0)
    for length, pairs in sizes.pairs.items():
        scores = random.normal(size=(pairs, 2, length))
        yield compare(
            f"Kendall's tau and p, {pairs} pairs of length {length}",
            lambda scores=scores: [kendalltau(x, y) for x, y in scores],
            lambda scores=scores: kendall_tau(scores),
            sizes.turns,
        )
    scores = random.normal(size=(sizes.compared, 8, 100))
    yield compare(
        f"Kendall's tau and p, 8 measures on {sizes.compared} texts of 100 words",
        lambda: [kendalltau(text[a], text[b]) for text in scores for a in range(8) for b in range(a)],
        lambda: kendall_tau(scores),
        sizes.turns,
    )
