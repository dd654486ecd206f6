"""Performance of the trained models on each split."""

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from plumbline.data.instances import optional_ragged, ragged
from plumbline.errors import PlumblineError
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.registry import table
from plumbline.store import TableSchema, read_table
from plumbline.tables.chance import ABOVE_CHANCE, AT_CHANCE, chance_reason, chance_summary
from plumbline.tables.sources import Sources
from plumbline.training.performance import PERFORMANCE_METRICS, accuracy, chance_level
from plumbline.training.schemas import PREDICTIONS


def performance_rows(
    cells: Iterable[Mapping[str, Any]], predictions: Iterable[pa.Table], least_above_chance: float | None = None
) -> pd.DataFrame:
    """Rows of the table `performance`, from one table of predictions per cell.

    A value of `above_chance` below `least_above_chance` gets the status by which other tables exclude models at chance.
    """
    rows = []
    for cell, predicted in zip(cells, predictions, strict=True):
        keys = {key: cell[key] for key in ("dataset", "variant", "model")}
        frame = predicted.select(["seed", "split", "label"]).to_pandas()
        all_probabilities = np.stack(ragged(predicted["probabilities"]))
        all_answers = optional_ragged(predicted["answers"])
        for (seed, split), group in frame.groupby(["seed", "split"], observed=True):
            probabilities, labels = all_probabilities[group.index], group["label"].to_numpy()
            answers = None if all_answers is None else [all_answers[k] for k in group.index]
            finite = np.isfinite(probabilities).all()
            for metric, score in PERFORMANCE_METRICS.items():
                more = (answers,) if metric == ABOVE_CHANCE else ()
                value = score(probabilities, labels, *more) if finite else np.nan
                reason = None if np.isfinite(value) else ("a class is absent" if finite else "training diverged")
                status = "undefined" if reason else "ok"
                if metric == ABOVE_CHANCE and least_above_chance is not None and value < least_above_chance:
                    right, chance = accuracy(probabilities, labels), chance_level(probabilities, labels, answers)
                    status, reason = AT_CHANCE, chance_reason(right, len(labels), chance, value, least_above_chance)
                rows.append(
                    {**keys, "seed": seed, "split": split, "metric": metric, "value": value}
                    | {"status": status, "reason": reason}
                )
    return pd.DataFrame(rows).sort_values(["dataset", "variant", "model", "split", "metric", "seed"], ignore_index=True)


@table("performance", reads=["predictions"], params=["least_above_chance"])
def performance_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """Performance of the models of all cells."""
    files = sources["predictions"]
    tables = (read_table(file.path, PREDICTIONS) for file in files)
    rows = performance_rows([file.keys for file in files], tables, sources.facts["least_above_chance"])
    for sentence in chance_summary(rows):
        # At the end of a run it may be too late: explanations of these models may take hours.
        warnings.warn(f"plumbline: {sentence}", stacklevel=1)
    return PERFORMANCE, rows


def stored_chance_summary(results: Path) -> list[str]:
    """The sentences about models at chance in the stored table; none if there is no table or it is unreadable."""
    try:
        return chance_summary(read_table(results / "tables/performance.parquet", PERFORMANCE).to_pandas())
    except (OSError, PlumblineError):
        return []
