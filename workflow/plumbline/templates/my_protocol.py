"""The protocol my-protocol. It works as it is; put your own in its place."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from plumbline import store
from plumbline.protocols.explained import Explained
from plumbline.registry import protocol

# The columns of its table in results/tables, beside those that say which dataset, variant and model a row is of.
TABLE = store.declare(
    "my-protocol",
    1,
    {**store.CELL, "seed": pa.int64(), "measure": store.WORD, "mean": pa.float64(), "n": pa.int32()},
    required=[*store.CELL, "seed", "measure", "n"],
)


@protocol("my-protocol", equation="max_t |s_t| / Σ_t |s_t|")
class MyProtocol:
    """The share of a text's importance that falls on its most important word."""

    table = TABLE

    def score(self, explained: Explained) -> dict[str, Any]:
        """Columns of the table `scores`: a row for each seed, measure and text."""
        rows: list[dict[str, Any]] = []
        for seed in explained.by_seed():
            for measure, texts in sorted(seed.scores.items()):
                for i, scores in enumerate(texts):
                    total = np.abs(scores).sum()
                    rows.append(
                        {
                            "seed": seed.seed,
                            "split": seed.split[i],
                            "instance": seed.instance[i],
                            "predicted_class": seed.predicted_class[i],
                            "measure_a": measure,
                            "statistic": "largest share",
                            "value": np.abs(scores).max() / total if total else None,
                            "length": len(scores),
                            "status": "ok" if total else "undefined",
                            "reason": None if total else "no word has any importance",
                        }
                    )
        return {column: [row[column] for row in rows] for column in rows[0]}

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of its own table: means over texts, and of how many."""
        frame = scores.to_pandas().rename(columns={"measure_a": "measure"})
        return (
            frame.groupby(["seed", "measure"], observed=True)["value"]
            .agg(["mean", "count"])
            .reset_index()
            .rename(columns={"count": "n"})
        )
