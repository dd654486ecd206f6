"""Files of importances: one per job, with a row group for each measure, so that each can be read alone."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.attribution.schemas import ATTRIBUTIONS
from plumbline.store import first_rows, read_table, stream_table, write_table


def write_importances(path: str | Path, measures: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the columns of each measure: those of the table `attributions` without `measure`."""
    names = [name for name, columns in measures.items() for _ in columns["seed"]]
    columns = {key: [value for own in measures.values() for value in own[key]] for key in next(iter(measures.values()))}
    write_table(path, ATTRIBUTIONS, {"measure": names, **columns}, group="measure")


def join_importances(
    parts: Sequence[str | Path], path: str | Path, measures: Sequence[str], seeds: Sequence[int]
) -> None:
    """Write the importances of instances that were split over files (`Instances.part`), in their original order."""
    rows = []
    for measure in measures:
        tables = [read_importances(part, measure) for part in parts]
        for seed in seeds:
            own = [table.filter(pc.equal(table["seed"], seed)) for table in tables]
            # Row j of part k of n is instance k + j n.
            places = [np.arange(len(table)) * len(parts) + k for k, table in enumerate(own)]
            rows.append(pa.concat_tables(own).unify_dictionaries().take(np.argsort(np.concatenate(places))))
    write_table(path, ATTRIBUTIONS, pa.concat_tables(rows), group="measure")


def read_importances(path: str | Path, measure: str, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of one measure."""
    return read_table(path, ATTRIBUTIONS, None if columns is None else list(columns), ("measure", measure))


def stream_importances(path: str | Path, measure: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    """The rows of one measure in chunks."""
    return stream_table(path, ATTRIBUTIONS, list(columns), ("measure", measure))


def first_importances(path: str | Path, measure: str, columns: Sequence[str], count: int) -> pa.Table:
    """The first `count` rows of one measure."""
    return first_rows(path, ATTRIBUTIONS, list(columns), count, ("measure", measure))
