"""Sparsity: the share of a text's importance held by its most important words."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.attribution.files import read_importances
from plumbline.data.instances import ragged
from plumbline.protocols.roar.schemas import SPARSITY
from plumbline.registry import table
from plumbline.store import TableSchema
from plumbline.tables.sources import Sources

WORDS = np.arange(1, 11)
PERCENT = np.arange(10, 101, 10)
UNITS = {"absolute": WORDS, "relative": PERCENT, "relative-published": PERCENT}
TOPS = [(unit, int(top)) for unit, tops in UNITS.items() for top in tops]


def top_shares(importances: np.ndarray) -> np.ndarray:
    """The share of a text's importance held by its most important words, for each of TOPS.

    Importances count by their absolute values. Q percent of n words are ⌊Q n / 100⌋ words, possibly none; as published,
    one more. NaN where all importances are 0, one is not finite, or there are none.
    """
    ordered = np.sort(np.abs(importances.astype(np.float64)))[::-1]
    n = len(ordered)
    running = np.concatenate([[0.0], np.cumsum(ordered)])
    if not np.isfinite(running[-1]) or running[-1] == 0:
        return np.full(len(TOPS), np.nan)
    words = np.concatenate([WORDS, PERCENT * n // 100, PERCENT * n // 100 + 1])
    return running[np.minimum(words, n)] / running[-1]


def sparsity_rows(scores: Sequence[np.ndarray]) -> list[dict[str, Any]]:
    """Mean `share` over texts for each unit and `top`, and the number `n` of texts that have a share.

    scores: the importances of each text's words, specials left out.
    """
    shares = np.array([top_shares(importances) for importances in scores]).reshape(-1, len(TOPS))
    shares = shares[~np.isnan(shares[:, 0])]
    means = shares.mean(0) if len(shares) else np.full(len(TOPS), np.nan)
    return [
        {"unit": unit, "top": top, "share": float(share), "n": len(shares)}
        for (unit, top), share in zip(TOPS, means, strict=True)
    ]


def sparsity_table(
    cells: Iterable[Mapping[str, Any]], attributions: Iterable[pa.Table], split: str = "dev"
) -> pd.DataFrame:
    """Rows of the table `sparsity`: each cell has a dataset, a model and a measure, and a table of importances."""
    rows = []
    for cell, importances in zip(cells, attributions, strict=True):
        keys = {key: cell[key] for key in ("dataset", "model", "measure")}
        explained = importances.filter(pc.equal(importances["split"].cast(pa.string()), split))
        seeds, scores = explained["seed"].to_numpy(), ragged(explained["scores"])
        for seed in np.unique(seeds):
            means = sparsity_rows([scores[i] for i in np.flatnonzero(seeds == seed)])
            rows += [{**keys, "seed": int(seed), **row} for row in means]
    return pd.DataFrame(rows)


@table("sparsity", reads=["importances:unmasked"])
def measured_sparsity(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """The share of a text's importance held by its most important words."""
    files = sources["importances:unmasked"]
    tables = (read_importances(file.path, file.keys["measure"], ["seed", "split", "scores"]) for file in files)
    return SPARSITY, sparsity_table([file.keys for file in files], tables)
