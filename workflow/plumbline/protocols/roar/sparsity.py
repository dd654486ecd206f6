"""How few words have most of a text's importance."""

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
    """The share of a text's importance that its most important words have, for each of TOPS.

    The sign of an importance does not count. Q percent of n words are ⌊Q n / 100⌋ of them, possibly none; as published,
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
    """Mean `share` over texts for each unit and `top`; `n` texts count, those whose importances tell nothing do not.

    scores: the importances of each text's words, specials left out.
    """
    told = np.array([top_shares(importances) for importances in scores]).reshape(-1, len(TOPS))
    told = told[~np.isnan(told[:, 0])]
    means = told.mean(0) if len(told) else np.full(len(TOPS), np.nan)
    return [
        {"unit": unit, "top": top, "share": float(share), "n": len(told)}
        for (unit, top), share in zip(TOPS, means, strict=True)
    ]


def sparsity_table(
    cells: Iterable[Mapping[str, Any]], attributions: Iterable[pa.Table], split: str = "dev"
) -> pd.DataFrame:
    """Rows of the table `sparsity`. Each cell names a dataset, a model and a measure, and has its table of scores."""
    rows = []
    for cell, importances in zip(cells, attributions, strict=True):
        keys = {key: cell[key] for key in ("dataset", "model", "measure")}
        here = importances.filter(pc.equal(importances["split"].cast(pa.string()), split))
        seeds, scores = here["seed"].to_numpy(), ragged(here["scores"])
        for seed in np.unique(seeds):
            found = sparsity_rows([scores[i] for i in np.flatnonzero(seeds == seed)])
            rows += [{**keys, "seed": int(seed), **row} for row in found]
    return pd.DataFrame(rows)


@table("sparsity", reads=["importances:unmasked"])
def measured_sparsity(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """How few words hold most of a text's importance."""
    files = sources["importances:unmasked"]
    tables = (read_importances(file.path, file.keys["measure"], ["seed", "split", "scores"]) for file in files)
    return SPARSITY, sparsity_table([file.keys for file in files], tables)
