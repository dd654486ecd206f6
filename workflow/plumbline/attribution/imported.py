"""Importances that were computed elsewhere, from a Parquet file."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plumbline.attribution.importances import Importances
from plumbline.config.external import KEY_COLUMNS, check_columns
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure

TARGET = "target"
# What each column must be, in words and as a test of its type.
TYPES: dict[str, tuple[str, Any]] = {
    **dict.fromkeys(
        ("dataset", "variant", "model", "measure", "split"),
        ("text", lambda t: pa.types.is_string(t) or pa.types.is_large_string(t)),
    ),
    **dict.fromkeys(("seed", "instance", TARGET), ("whole numbers", pa.types.is_integer)),
    "scores": ("lists of numbers", lambda t: _is_list(t) and _is_number(t.value_type)),
}


def _is_list(type_: pa.DataType) -> bool:
    return pa.types.is_list(type_) or pa.types.is_large_list(type_)


def _is_number(type_: pa.DataType) -> bool:
    return pa.types.is_floating(type_) or pa.types.is_integer(type_)


def read_external_scores(path: str, where: dict[str, str | int], measure: str = "") -> pa.Table:
    """The rows of a file whose columns, as far as it has them, say that they are of this dataset, variant, model, seed
    and measure."""
    check_columns("`path`", path)
    table = pq.read_table(path, columns=[name for name in pq.read_schema(path).names if name in TYPES])
    names = table.column_names
    for name in names:
        type_ = table.schema.field(name).type
        if pa.types.is_dictionary(type_):
            type_ = type_.value_type
            table = table.set_column(names.index(name), name, table[name].cast(type_))
        wanted, right = TYPES[name]
        if not right(type_):
            raise PlumblineError(f"The column '{name}' of '{path}' is {type_}; it must hold {wanted}.")
        if table[name].null_count:
            raise PlumblineError(f"The column '{name}' of '{path}' is empty in {table[name].null_count} rows.")
    for name in KEY_COLUMNS:
        if name in names and name in where:
            table = table.filter(pc.equal(table[name], pa.scalar(where[name])))
    if "measure" not in names:
        return table
    found = sorted(set(table["measure"].to_pylist()))
    if measure not in found and (measure or len(found) > 1):
        asked = f"not '{measure}'" if measure else "set `measure` to one of them"
        raise PlumblineError(f"'{path}' holds the measures {', '.join(found)}; {asked}.")
    return table.filter(pc.equal(table["measure"], measure)) if measure else table


@measure(
    "imported",
    required=["path"],
    pixels=True,
    equation="what the file says",
)
def imported(evaluator: Evaluator, instances: Instances, *, path: str = "", measure: str = "") -> Importances:
    """Importances that were computed elsewhere: a Parquet file with the columns split, instance and scores.

    `scores` has a number for each word of the instance. The columns dataset, variant, model and seed, if the file has
    them, say what a row is about; without one, a row holds for all. `measure` chooses among those of its column, if the
    file has several. `target` is the class that was explained.
    """
    where: dict[str, str | int] = {**evaluator.cell, "seed": evaluator.seed}
    of = f"({', '.join(f'{key} {value}' for key, value in where.items())})"
    table = read_external_scores(path, where, measure)
    keys = list(zip(table["split"].to_pylist(), table["instance"].to_pylist(), strict=True))
    row_of = dict(zip(keys, range(len(keys)), strict=True))
    if len(row_of) < len(keys):
        twice = next(key for row, key in enumerate(keys) if row_of[key] != row)
        raise PlumblineError(f"'{path}' {of} has instance {twice[1]} of split '{twice[0]}' more than once.")
    asked = list(zip(instances.split.tolist(), instances.instance.tolist(), strict=True))
    absent = [key for key in asked if key not in row_of]
    if absent:
        raise PlumblineError(
            f"'{path}' {of} lacks {len(absent)} of {len(asked)} instances, such as {absent[0][1]} of split "
            f"'{absent[0][0]}'."
        )
    table = table.take([row_of[key] for key in asked])
    scores = [np.array(row.as_py(), dtype=np.float64) for row in table["scores"]]
    for (split, instance), found, free in zip(asked, scores, instances.maskable, strict=True):
        named = f"'{path}' {of}: the scores of instance {instance} of split '{split}'"
        if len(found) != free.sum():
            raise PlumblineError(f"{named} are {len(found)}, and it has {free.sum()} words.")
        if not np.isfinite(found).all():
            raise PlumblineError(f"{named} are not all finite numbers.")
    target = table[TARGET].to_numpy().astype(np.int32) if TARGET in table.column_names else None
    return Importances([found.astype(np.float32) for found in scores], target)
