"""Twins: measures of a cell that rank alike, which must not count as independent evidence.

For example, with two classes the gradient and input times gradient of some models differ only by a factor per text.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from plumbline.attribution.files import first_importances
from plumbline.data.instances import ragged
from plumbline.protocols.agreement.rank_statistics import kendall_tau
from plumbline.protocols.agreement.selections import TWIN_TAU
from plumbline.protocols.criteria import Cell, Twins

# The number of instances of a cell to compare, and the most words or pixels of each.
INSTANCES, WORDS = 100, 200


def first_twin(twins: Twins, cell: Cell, measure: str) -> str:
    """The first measure of a cell that ranks like this one, or the measure itself."""
    return twins.get(cell, {}).get(measure, measure)


def find_twins(scores: Mapping[str, Sequence[np.ndarray]], seed: int = 0) -> dict[str, str]:
    """Maps each measure that ranks like an earlier one to the first such measure.

    `scores` has one importance array per instance and measure. Kendall's τ-b accounts for ties, as among the words of
    a rationale; instances without a defined τ-b are ignored.
    """
    names = list(scores)
    generator = np.random.default_rng(seed)
    sums, counts = np.zeros((len(names), len(names))), np.zeros((len(names), len(names)))
    for rows in zip(*scores.values(), strict=True):
        if len({len(row) for row in rows}) != 1 or len(rows[0]) < 2:
            continue
        words = len(rows[0])
        sampled = np.sort(generator.choice(words, WORDS, replace=False)) if words > WORDS else np.arange(words)
        importances = np.array([row[sampled] for row in rows], dtype=np.float64)
        finite = np.asarray(np.isfinite(importances).all(1))
        taus, _ = kendall_tau(np.where(finite[:, None], importances, 0.0)[None])
        defined = np.isfinite(taus[0]) & finite[:, None] & finite
        sums += np.where(defined, taus[0], 0.0)
        counts += defined
    alike = (counts > 0) & (sums >= TWIN_TAU * counts)
    twins: dict[str, str] = {}
    for i, name in enumerate(names):
        earlier = [first for j, first in enumerate(names[:i]) if first not in twins and alike[i, j]]
        if earlier:
            twins[name] = earlier[0]
    return twins


def find_twins_in_files(importances: Mapping[str, str | Path]) -> dict[str, str]:
    """The twins among the measures of a cell, from the first instances of their files of importances."""
    rows: dict[str, dict[tuple[int, str, int], np.ndarray]] = {}
    for measure, path in importances.items():
        table = first_importances(path, measure, ["seed", "split", "instance", "scores"], INSTANCES)
        keys = zip(*(table[key].to_pylist() for key in ("seed", "split", "instance")), strict=True)
        rows[measure] = dict(zip(keys, ragged(table["scores"]), strict=True))
    common = [key for key in next(iter(rows.values()), {}) if all(key in own for own in rows.values())]
    return find_twins({measure: [own[key] for key in common] for measure, own in rows.items()})
