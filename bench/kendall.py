"""Time of `kendall_tau` against a loop over `scipy.stats.kendalltau`, for pairs of vectors (M = 2).

Run with the library on the path: PYTHONPATH=workflow python bench/kendall.py
"""

from __future__ import annotations

import time

import numpy as np
from scipy import stats  # type: ignore[import-untyped, unused-ignore]

from plumbline.protocols.rank_statistics import kendall_tau

# Fewer long pairs keep the scipy loop of the whole table to a few seconds.
PAIRS_BY_LENGTH = {20: 5000, 100: 2000, 400: 1000}
REPEATS = 3


def main() -> None:
    rng = np.random.default_rng(0)
    print(f"{'length':>6} {'pairs':>6} {'scipy loop [s]':>15} {'kendall_tau [s]':>16} {'ratio':>8}")
    for n, n_pairs in PAIRS_BY_LENGTH.items():
        scores = rng.normal(size=(n_pairs, 2, n))
        kendall_tau(scores[:1])
        loop_times, batched_times = [], []
        # Alternating, and keeping the minimum, so that other work on the machine hits neither side alone.
        for _ in range(REPEATS):
            start = time.perf_counter()
            for x, y in scores:
                stats.kendalltau(x, y)
            loop_times.append(time.perf_counter() - start)
            start = time.perf_counter()
            kendall_tau(scores)
            batched_times.append(time.perf_counter() - start)
        loop, batched = min(loop_times), min(batched_times)
        print(f"{n:>6} {n_pairs:>6} {loop:>15.3f} {batched:>16.4f} {loop / batched:>7.1f}x")


if __name__ == "__main__":
    main()
