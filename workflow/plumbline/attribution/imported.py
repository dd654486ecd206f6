"""Importances computed elsewhere, read from a Parquet file."""

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
# The type of each column, in words and as a predicate.
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
    """The rows of a file that belong to this dataset, variant, model, seed and measure, by the columns that it has."""
    check_columns("`path`", path)
    table = pq.read_table(path, columns=[name for name in pq.read_schema(path).names if name in TYPES])
    names = table.column_names
    for name in names:
        type_ = table.schema.field(name).type
        if pa.types.is_dictionary(type_):
            type_ = type_.value_type
            table = table.set_column(names.index(name), name, table[name].cast(type_))
        description, is_right = TYPES[name]
        if not is_right(type_):
            raise PlumblineError(f"The column '{name}' of '{path}' is {type_}; it must hold {description}.")
        if table[name].null_count:
            raise PlumblineError(
                f"The column '{name}' of '{path}' is empty in {table[name].null_count} rows; give a value in every row."
            )
    for name in KEY_COLUMNS:
        if name in names and name in where:
            table = table.filter(pc.equal(table[name], pa.scalar(where[name])))
    if "measure" not in names:
        return table
    measures = sorted(set(table["measure"].to_pylist()))
    if measure not in measures and (measure or len(measures) > 1):
        advice = f"not '{measure}'" if measure else "set `measure` to one of them"
        raise PlumblineError(f"'{path}' holds the measures {', '.join(measures)}; {advice}.")
    return table.filter(pc.equal(table["measure"], measure)) if measure else table


@measure(
    "imported",
    required=["path"],
    pixels=True,
    equation="scores of the file",
    cost="No pass through the model: a file is read.",
    misleads="Only keys and lengths are checked: scores of another checkpoint or class, or of tokens in another "
    "order, look valid.",
)
def imported(evaluator: Evaluator, instances: Instances, *, path: str = "", measure: str = "") -> Importances:
    """Importances computed elsewhere: a Parquet file with the columns split, instance and scores.

    `scores` has a number for each word of the instance. The optional columns dataset, variant, model and seed restrict
    a row to one of them; without a column, a row is valid for all. `target` is the explained class.

    Options:
        path: The Parquet file.
        measure: Name in the file's column `measure`, if the file has several measures.
    """
    where: dict[str, str | int] = {**evaluator.cell, "seed": evaluator.seed}
    of = f"({', '.join(f'{key} {value}' for key, value in where.items())})"
    table = read_external_scores(path, where, measure)
    keys = list(zip(table["split"].to_pylist(), table["instance"].to_pylist(), strict=True))
    row_of = dict(zip(keys, range(len(keys)), strict=True))
    if len(row_of) < len(keys):
        twice = next(key for row, key in enumerate(keys) if row_of[key] != row)
        raise PlumblineError(
            f"'{path}' {of} has instance {twice[1]} of split '{twice[0]}' more than once; keep one row."
        )
    wanted = list(zip(instances.split.tolist(), instances.instance.tolist(), strict=True))
    missing = [key for key in wanted if key not in row_of]
    if missing:
        raise PlumblineError(
            f"'{path}' {of} lacks {len(missing)} of {len(wanted)} instances, such as {missing[0][1]} of split "
            f"'{missing[0][0]}'; add scores for all explained instances."
        )
    table = table.take([row_of[key] for key in wanted])
    scores = [np.array(row.as_py(), dtype=np.float64) for row in table["scores"]]
    for (split, instance), values, words in zip(wanted, scores, instances.maskable, strict=True):
        subject = f"'{path}' {of}: instance {instance} of split '{split}'"
        if len(values) != words.sum():
            raise PlumblineError(
                f"{subject} has {len(values)} scores and {words.sum()} words; give one score for each word."
            )
        if not np.isfinite(values).all():
            raise PlumblineError(f"{subject} has a score that is not a finite number.")
    target = table[TARGET].to_numpy().astype(np.int32) if TARGET in table.column_names else None
    return Importances([values.astype(np.float32) for values in scores], target)
