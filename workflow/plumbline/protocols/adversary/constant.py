"""The best constant output: how near to a base model an adversary comes that ignores the text."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from plumbline.protocols.adversary.schemas import CONSTANT_OUTPUT
from plumbline.protocols.adversary.table import FloatArray, output_distance
from plumbline.registry import table
from plumbline.store import TableSchema, read_table
from plumbline.tables.sources import Sources
from plumbline.training.schemas import PREDICTIONS

NO_OUTPUT = "the base model has no finite output for the test texts"


def best_constant(outputs: npt.ArrayLike) -> FloatArray:
    """The probabilities q [C] with the least mean TVD from outputs [N, C].

    The mean TVD is a sum of one convex function for each class, of which the slope at q_c depends on the number of
    outputs below q_c alone. At the optimum under Σ_c q_c = 1 all slopes are equal, so q lies between the k-th and the
    next smallest value of every class, with the same k. For two classes these are medians.
    """
    ascending = np.sort(np.asarray(outputs, dtype=np.float64), axis=0)
    sums = ascending.sum(1)
    below = min(max(int(np.searchsorted(sums, 1.0, side="right")) - 1, 0), max(len(sums) - 2, 0))
    above = min(below + 1, len(sums) - 1)
    gap = sums[above] - sums[below]
    share = 0.0 if gap <= 0 else min(max((1 - sums[below]) / gap, 0.0), 1.0)
    return np.asarray(ascending[below] + share * (ascending[above] - ascending[below]))


def constant_rows(predictions: pd.DataFrame, keys: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The row of a base model; `keys` are those of the table, `base_seed` among them."""
    own = predictions[(predictions["split"] == "test") & (predictions["seed"] == keys["base_seed"])]
    outputs = np.array(own["probabilities"].tolist(), dtype=np.float64)
    row = {**keys, "n": len(outputs), "tvd": np.nan, "status": "ok", "reason": None}
    if len(outputs) and np.isfinite(outputs).all():
        yield row | {"tvd": float(output_distance(outputs, best_constant(outputs)).mean())}
    else:
        yield row | {"status": "undefined", "reason": NO_OUTPUT}


@table("constant_output", reads=["predictions:attacked"])
def constant_output_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """The TVD between each base model that has adversaries and the best constant output for all test texts."""
    rows = [
        row
        for keys, path in sources["predictions:attacked"]
        for row in constant_rows(read_table(path, PREDICTIONS).to_pandas(), keys)
    ]
    return CONSTANT_OUTPUT, pd.DataFrame(rows)
