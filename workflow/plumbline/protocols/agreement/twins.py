"""Measures that rank alike: two names of one ranking must not count as two witnesses.

On a two-class head the gradient and input times gradient of some models are one measure but for a factor, for example.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from plumbline.attribution.files import first_importances
from plumbline.data.instances import ragged
from plumbline.protocols.agreement.rank_statistics import kendall_tau
from plumbline.protocols.agreement.table import LEAST_TAU

# So many instances of a cell are compared, and of each so many words or pixels at most.
INSTANCES, WORDS = 100, 200
Cell = tuple[str, str, str]
Twins = Mapping[Cell, Mapping[str, str]]


def first_twin(twins: Twins, cell: Cell, measure: str) -> str:
    """The first of the measures that rank like this one in a cell; itself if none before it does."""
    return twins.get(cell, {}).get(measure, measure)


def twins_among(scores: Mapping[str, Sequence[np.ndarray]], seed: int = 0) -> dict[str, str]:
    """By measure, the first one that it ranks like, for all but the first of each group.

    `scores` has each measure's importances, one array per instance. Instances that a measure does not order, or orders
    in part, as most words of a rationale, count by Kendall's τ-b of what it does.
    """
    names = list(scores)
    generator = np.random.default_rng(seed)
    sums, counts = np.zeros((len(names), len(names))), np.zeros((len(names), len(names)))
    for rows in zip(*scores.values(), strict=True):
        if len({len(row) for row in rows}) != 1 or len(rows[0]) < 2:
            continue
        words = len(rows[0])
        taken = np.sort(generator.choice(words, WORDS, replace=False)) if words > WORDS else np.arange(words)
        told = np.array([row[taken] for row in rows], dtype=np.float64)
        finite = np.asarray(np.isfinite(told).all(1))
        taus, _ = kendall_tau(np.where(finite[:, None], told, 0.0)[None])
        known = np.isfinite(taus[0]) & finite[:, None] & finite
        sums += np.where(known, taus[0], 0.0)
        counts += known
    alike = (counts > 0) & (sums >= LEAST_TAU * counts)
    found: dict[str, str] = {}
    for place, name in enumerate(names):
        before = [first for first in names[:place] if first not in found and alike[place, names.index(first)]]
        if before:
            found[name] = before[0]
    return found


def twins_of(importances: Mapping[str, str | Path]) -> dict[str, str]:
    """The twins among the measures of a cell, from the first instances of their files."""
    rows: dict[str, dict[tuple[int, str, int], np.ndarray]] = {}
    for measure, path in importances.items():
        table = first_importances(path, measure, ["seed", "split", "instance", "scores"], INSTANCES)
        keys = zip(*(table[key].to_pylist() for key in ("seed", "split", "instance")), strict=True)
        rows[measure] = dict(zip(keys, ragged(table["scores"]), strict=True))
    common = [key for key in next(iter(rows.values()), {}) if all(key in own for own in rows.values())]
    return twins_among({measure: [own[key] for key in common] for measure, own in rows.items()})
