"""Reading and writing artefacts: Parquet tables with declared schemas, safetensors, JSON. Nothing is pickled.

Every write goes to a temporary name that is unique to the process and is then renamed, so that a reader sees a whole
file or none, and two writers never mix.
"""

import json
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.errors import DamagedError, PlumblineError

if TYPE_CHECKING:
    import torch

INTEGERS = pa.list_(pa.int32())
NUMBERS = pa.list_(pa.float32())
FLAGS = pa.list_(pa.bool_())
GROUPS = pa.list_(pa.int8())
WORD = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True)
class Artefact:
    """A kind of table: its name, version and columns. Bump the version when the meaning of a column changes."""

    name: str
    version: int
    schema: pa.Schema


ARTEFACTS: dict[str, Artefact] = {}


def declare(name: str, version: int, columns: Mapping[str, pa.DataType], required: Iterable[str] = ()) -> Artefact:
    """Declare a kind of table; `required` columns may hold no null."""
    needed = set(required)
    fields = [pa.field(column, type_, nullable=column not in needed) for column, type_ in columns.items()]
    ARTEFACTS[name] = Artefact(name, version, pa.schema(fields))
    return ARTEFACTS[name]


INSTANCE_KEY = {"split": WORD, "instance": pa.int32()}
CELL = {"dataset": WORD, "variant": WORD, "model": WORD}
STATUS = {"status": WORD, "reason": WORD}

declare(
    "instances",
    4,
    {
        **INSTANCE_KEY,
        "label": pa.int32(),
        "tokens": pa.list_(pa.string()),
        "ids": INTEGERS,
        "maskable": FLAGS,
        "tokens_b": pa.list_(pa.string()),
        "ids_b": INTEGERS,
        "maskable_b": FLAGS,
        "word": INTEGERS,
        "word_b": INTEGERS,
        "answers": INTEGERS,
        "evidence": FLAGS,
        "groups": GROUPS,
        "groups_b": GROUPS,
        "original_label": pa.int32(),
    },
    required=["split", "instance", "label", "tokens", "ids", "maskable"],
)
declare(
    "vocabulary",
    1,
    {"id": pa.int32(), "word": pa.string(), "document_frequency": pa.int32()},
    required=["id", "word", "document_frequency"],
)
declare(
    "history",
    1,
    {
        "seed": pa.int64(),
        "epoch": pa.int32(),
        "split": WORD,
        "metric": WORD,
        "value": pa.float64(),
        "seconds": pa.float64(),
    },
    required=["seed", "epoch", "split", "metric"],
)
declare(
    "predictions",
    1,
    {"seed": pa.int64(), **INSTANCE_KEY, "label": pa.int32(), "probabilities": NUMBERS},
    required=["seed", "split", "instance", "label", "probabilities"],
)
declare(
    "attributions",
    3,
    {
        "seed": pa.int64(),
        **INSTANCE_KEY,
        "target": pa.int32(),
        "scores": NUMBERS,
        "pair": NUMBERS,
        "specials": NUMBERS,
        "residual": pa.float32(),
    },
    required=["seed", "split", "instance", "scores"],
)
declare(
    "scores",
    2,
    {
        "seed": pa.int64(),
        **INSTANCE_KEY,
        "predicted_class": pa.int32(),
        "measure_a": WORD,
        "measure_b": WORD,
        "statistic": WORD,
        "tokens": WORD,
        "value": pa.float64(),
        "p_value": pa.float64(),
        "length": pa.int32(),
        "status": WORD,
        "reason": WORD,
    },
    required=["seed", "split", "instance", "statistic", "status"],
)
declare(
    "performance",
    1,
    {**CELL, "seed": pa.int64(), "split": WORD, "metric": WORD, "value": pa.float64(), "status": WORD, "reason": WORD},
    required=["dataset", "variant", "model", "seed", "split", "metric", "status"],
)
declare(
    "agreement",
    2,
    {
        **CELL,
        "seed": pa.int64(),
        "measure_a": WORD,
        "measure_b": WORD,
        "statistic": WORD,
        "tokens": WORD,
        "predicted_class": WORD,
        "n": pa.int32(),
        "dropped": pa.int32(),
        "mean": pa.float64(),
        "std": pa.float64(),
        "significant_fraction": pa.float64(),
        "status": WORD,
        "reason": WORD,
    },
    required=[
        "dataset",
        "variant",
        "model",
        "seed",
        "measure_a",
        "measure_b",
        "statistic",
        "predicted_class",
        "status",
    ],
)
PREDICTED = {"seed": pa.int64(), **INSTANCE_KEY, "predicted_class": pa.int32(), "length": pa.int32()}
QUARTILES = ("q25", "q50", "q75")

declare(
    "permutation_scores",
    1,
    {**PREDICTED, "max_attention": pa.float64(), "median_change": pa.float64()},
    required=["seed", "split", "instance", "predicted_class", "max_attention", "median_change"],
)
declare(
    "permutation",
    2,
    {
        **CELL,
        "seed": pa.int64(),
        "predicted_class": WORD,
        "max_attention_bin": WORD,
        "n": pa.int32(),
        "median_change_mean": pa.float64(),
        **{f"median_change_{quartile}": pa.float64() for quartile in QUARTILES},
        **STATUS,
    },
    required=["dataset", "variant", "model", "seed", "predicted_class", "max_attention_bin", "n", "status"],
)
# One row per seed, measure and instance; lists have an entry for each ratio.
declare(
    "erasure_scores",
    2,
    {
        **PREDICTED,
        "measure": WORD,
        "comprehensiveness": pa.float64(),
        "sufficiency": pa.float64(),
        "comprehensiveness_at": NUMBERS,
        "sufficiency_at": NUMBERS,
        "fall_to_nothing": pa.float64(),
        "soft_fall_without": pa.float64(),
        "soft_fall_alone": pa.float64(),
    },
    required=["seed", "split", "instance", "predicted_class", "measure"],
)
# Without a ratio, hard metrics are areas over the perturbation curve.
declare(
    "erasure",
    2,
    {
        **CELL,
        "seed": pa.int64(),
        "measure": WORD,
        "metric": WORD,
        "ratio": pa.float64(),
        "n": pa.int32(),
        "dropped": pa.int32(),
        "mean": pa.float64(),
        "std": pa.float64(),
        "status": WORD,
        "reason": WORD,
    },
    required=["dataset", "variant", "model", "seed", "measure", "metric", "n", "status"],
)
# One row per epsilon: the adversary that differs most from the attention. `feasible` are those of the search that kept
# the bound; without one, it is one of the others, moved back towards the attention until it does.
declare(
    "adversaries",
    2,
    {
        **PREDICTED,
        "epsilon": pa.float64(),
        "max_attention": pa.float64(),
        "feasible": pa.int32(),
        "jsd": pa.float64(),
        "change": pa.float64(),
        "attention": NUMBERS,
        "adversary": NUMBERS,
        "probabilities": NUMBERS,
        "adversary_probabilities": NUMBERS,
    },
    required=["seed", "split", "instance", "predicted_class", "epsilon", "feasible", "jsd", "change", "adversary"],
)
declare(
    "adversarial_attention",
    2,
    {
        **CELL,
        "seed": pa.int64(),
        "predicted_class": WORD,
        "epsilon": pa.float64(),
        "max_attention_bin": WORD,
        "n": pa.int32(),
        "feasible_fraction": pa.float64(),
        "jsd_mean": pa.float64(),
        "jsd_std": pa.float64(),
        **{f"jsd_{quartile}": pa.float64() for quartile in QUARTILES},
        **STATUS,
    },
    required=["dataset", "variant", "model", "seed", "predicted_class", "epsilon", "max_attention_bin", "n", "status"],
)
# Where a model looks: `heads` rows of weights end to end, each with one number per word.
declare(
    "attention",
    1,
    {"seed": pa.int64(), **INSTANCE_KEY, "heads": pa.int32(), "attention": NUMBERS},
    required=["seed", "split", "instance", "heads", "attention"],
)
# One row per seed of the adversary and split that chooses its epoch; scores are of the test split at that epoch.
declare(
    "adversary",
    1,
    {
        **CELL,
        "adversary": WORD,
        "objective": WORD,
        "strength": pa.float64(),
        "base_seed": pa.int64(),
        "seed": pa.int64(),
        "selected_on": WORD,
        "epoch": pa.int32(),
        "epochs": pa.int32(),
        "f1": pa.float64(),
        "tvd": pa.float64(),
        "jsd": pa.float64(),
        "attefa": pa.float64(),
        "status": WORD,
        "reason": WORD,
    },
    required=["dataset", "variant", "model", "adversary", "objective", "base_seed", "seed", "selected_on", "status"],
)
# One row per other seed and instance; class, length and largest weight are the base seed's.
declare(
    "seed_variance_scores",
    1,
    {**PREDICTED, "base_seed": pa.int64(), "max_attention": pa.float64(), "jsd": pa.float64(), "tvd": pa.float64()},
    required=["seed", "split", "instance", "base_seed", "max_attention", "jsd", "tvd"],
)
declare(
    "seed_variance",
    2,
    {
        **CELL,
        "base_seed": pa.int64(),
        "seed": pa.int64(),
        "max_attention_bin": WORD,
        "n": pa.int32(),
        "tvd_mean": pa.float64(),
        "jsd_mean": pa.float64(),
        **{f"jsd_{quartile}": pa.float64() for quartile in QUARTILES},
        **STATUS,
    },
    required=["dataset", "variant", "model", "base_seed", "seed", "max_attention_bin", "n", "status"],
)
# Which words of each text are masked for a seed, one flag per word.
declare(
    "masks",
    1,
    {"seed": pa.int64(), **INSTANCE_KEY, "masked": FLAGS},
    required=["seed", "split", "instance", "masked"],
)
# Performance of models trained on texts with words masked. Each curve is whole: level 0 is the model of the plain
# texts, and the last level of relative ones, at which everything is masked, is one that all measures share.
# `trained_on` is `words`, or `positions` for a model that sees which words are masked and nothing else.
CURVE = {"dataset": WORD, "model": WORD, "strategy": WORD, "unit": WORD, "measure": WORD}
declare(
    "roar",
    1,
    {
        **CURVE,
        "level": pa.int32(),
        "trained_on": WORD,
        "variant": WORD,
        "seed": pa.int64(),
        "metric": WORD,
        "value": pa.float64(),
        "status": WORD,
        "reason": WORD,
    },
    required=[*CURVE, "level", "trained_on", "variant", "seed", "metric", "status"],
)
# One row per criterion, dataset, variant, model and measure, told or not. Intervals are over seeds. `twin_of` is a
# measure before this one that ranks words alike.
declare(
    "scorecard",
    2,
    {
        "criterion": WORD,
        "direction": WORD,
        **CELL,
        "measure": WORD,
        "n_seeds": pa.int32(),
        "per_seed": pa.list_(pa.float64()),
        "value": pa.float64(),
        "ci_low": pa.float64(),
        "ci_high": pa.float64(),
        "twin_of": WORD,
        "status": WORD,
        "reason": WORD,
    },
    required=["criterion", "direction", "dataset", "variant", "model", "measure", "n_seeds", "status"],
)
declare(
    "meta_evaluation",
    2,
    {
        "criterion_a": WORD,
        "criterion_b": WORD,
        "matched": WORD,
        "n_cells": pa.int32(),
        "n_datasets": pa.int32(),
        "tau": pa.float64(),
        "ci_low": pa.float64(),
        "ci_high": pa.float64(),
        "status": WORD,
        "reason": WORD,
    },
    required=["criterion_a", "criterion_b", "matched", "n_cells", "n_datasets", "status"],
)
# Areas are shares of that between random and nothing left; `floor` is the performance with everything masked.
declare(
    "faithfulness",
    1,
    {
        **CURVE,
        "metric": WORD,
        "n_seeds": pa.int32(),
        "n_levels": pa.int32(),
        "per_seed": pa.list_(pa.float64()),
        "faithfulness": pa.float64(),
        "ci_low": pa.float64(),
        "ci_high": pa.float64(),
        "unclipped": pa.float64(),
        "unclipped_ci_low": pa.float64(),
        "unclipped_ci_high": pa.float64(),
        "floor": pa.float64(),
        "floor_ci_low": pa.float64(),
        "floor_ci_high": pa.float64(),
        "status": WORD,
        "reason": WORD,
    },
    required=[*CURVE, "metric", "n_seeds", "status"],
)
# The mean share of a text's importance that its `top` words have: so many of them, or so many percent.
declare(
    "sparsity",
    1,
    {
        "dataset": WORD,
        "model": WORD,
        "measure": WORD,
        "seed": pa.int64(),
        "unit": WORD,
        "top": pa.int32(),
        "share": pa.float64(),
        "n": pa.int32(),
    },
    required=["dataset", "model", "measure", "seed", "unit", "top", "n"],
)
# Hooker et al.'s synthetic check: accuracy after so many of the features were removed.
declare(
    "synthetic_roar",
    1,
    {"seed": pa.int64(), "curve": WORD, "removed": pa.int32(), "accuracy": pa.float64()},
    required=["seed", "curve", "removed", "accuracy"],
)
declare(
    "reproduction",
    5,
    {
        "study": WORD,
        "table": WORD,
        "dataset": WORD,
        "variant": WORD,
        "model": WORD,
        "measure_a": WORD,
        "measure_b": WORD,
        "predicted_class": WORD,
        "seed": pa.int64(),
        "selected_on": WORD,
        "metric": WORD,
        "published": pa.float64(),
        "published_spread": pa.float64(),
        "published_low": pa.float64(),
        "published_high": pa.float64(),
        "published_later": pa.float64(),
        "ours": pa.float64(),
        "ours_spread": pa.float64(),
        "n_seeds": pa.int32(),
        "tolerance": pa.float64(),
        "within": pa.bool_(),
        "note": pa.string(),
    },
    required=["study", "table", "dataset", "metric", "published"],
)
# Published numbers that rest on a quirk of the published code or print: ours with it and without it.
declare(
    "quirks",
    1,
    {
        "quirk": WORD,
        "study": WORD,
        "where": WORD,
        "what": WORD,
        "with": WORD,
        "without": WORD,
        "table": WORD,
        "dataset": WORD,
        "model": WORD,
        "measure_a": WORD,
        "measure_b": WORD,
        "predicted_class": WORD,
        "metric": WORD,
        "published": pa.float64(),
        **{
            f"{side}{part}": kind
            for side in ("as_published", "corrected")
            for part, kind in {"": pa.float64(), "_spread": pa.float64(), "_seeds": pa.int32()}.items()
        },
        "status": WORD,
        "reason": pa.string(),
    },
    required=["quirk", "study", "where", "what", "status"],
)
# How much of a map's importance falls on each group that a manipulation tells apart; the first group is the `truth`.
MANIPULATED = {
    "manipulation": WORD,
    "kind": WORD,
    "visibility": pa.float64(),
    "level": pa.int32(),
    "draw": pa.int32(),
    "r": pa.float64(),
}
declare(
    "ground_truth_scores",
    1,
    {
        "seed": pa.int64(),
        **INSTANCE_KEY,
        "label": pa.int32(),
        "predicted_class": pa.int32(),
        "measure": WORD,
        "group": WORD,
        "truth": pa.bool_(),
        **MANIPULATED,
        "attributed": pa.float64(),
        "region": pa.float64(),
        "found": pa.float64(),
        "auc": pa.float64(),
        "length": pa.int32(),
        "accuracy": pa.float64(),
        "chance_bound": pa.float64(),
        "status": WORD,
        "reason": WORD,
    },
    required=["seed", "split", "instance", "label", "measure", "group", "truth", "status"],
)
# `class` is the label after reassignment, or `all`; `region_fraction` is what a measure that knows nothing gets.
declare(
    "ground_truth",
    2,
    {
        **CELL,
        "seed": pa.int64(),
        "measure": WORD,
        "group": WORD,
        "truth": pa.bool_(),
        "class": WORD,
        **MANIPULATED,
        "n": pa.int32(),
        "undefined": pa.int32(),
        "attributed_fraction": pa.float64(),
        "ci_low": pa.float64(),
        "ci_high": pa.float64(),
        "region_fraction": pa.float64(),
        "above_region": pa.float64(),
        "found": pa.float64(),
        "auc": pa.float64(),
        "accuracy": pa.float64(),
        "chance_bound": pa.float64(),
        "status": WORD,
        "reason": WORD,
    },
    required=["dataset", "variant", "model", "seed", "measure", "group", "truth", "class", "n", "undefined", "status"],
)
# The same of models at the epochs that were kept, as means; `accuracy` is on the instances that are explained.
TRACE = {
    "seed": pa.int64(),
    "epoch": pa.int32(),
    "measure": WORD,
    "group": WORD,
    "truth": pa.bool_(),
    "n": pa.int32(),
    "undefined": pa.int32(),
    "attributed_fraction": pa.float64(),
    "region_fraction": pa.float64(),
    "accuracy": pa.float64(),
    "dev_accuracy": pa.float64(),
}
TRACED = ["seed", "epoch", "measure", "group", "truth", "n", "undefined", "accuracy"]
declare("trace_scores", 1, TRACE, required=TRACED)
declare("trace", 1, {**CELL, **TRACE}, required=[*CELL, *TRACED])
# What a model that classifies by some words alone selects: words, how many are selected, how many decide since a
# manipulation (null if none did), and how many are both.
declare(
    "rationale_scores",
    1,
    {
        "seed": pa.int64(),
        **INSTANCE_KEY,
        "label": pa.int32(),
        "predicted_class": pa.int32(),
        "target_rate": pa.float64(),
        "words": pa.int32(),
        "selected": pa.int32(),
        "truth": pa.int32(),
        "hits": pa.int32(),
    },
    required=["seed", "split", "instance", "label", "predicted_class", "words", "selected"],
)
# The optimum is what the same number of selected words could reach, of all texts together and, `each`, if every text
# had as large a share of them.
declare(
    "rationales",
    1,
    {
        **CELL,
        "seed": pa.int64(),
        "target_rate": pa.float64(),
        "selection_rate": pa.float64(),
        "truth_rate": pa.float64(),
        "precision": pa.float64(),
        "recall": pa.float64(),
        "optimum_precision": pa.float64(),
        "optimum_recall": pa.float64(),
        "optimum_precision_each": pa.float64(),
        "optimum_recall_each": pa.float64(),
        "accuracy": pa.float64(),
        "n": pa.int32(),
        "status": WORD,
        "reason": WORD,
    },
    required=["dataset", "variant", "model", "seed", "selection_rate", "accuracy", "n", "status"],
)
declare(
    "timings",
    2,
    {
        "rule": WORD,
        **CELL,
        "seeds": WORD,
        "measure": WORD,
        "seconds": pa.float64(),
        "startup_seconds": pa.float64(),
        "peak_rss": pa.float64(),
        "peak_gpu": pa.float64(),
        "device": WORD,
        "rows": pa.int64(),
        "rows_per_second": pa.float64(),
        "token_budget": pa.int64(),
        "event": pa.string(),
    },
    required=["rule", "device"],
)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path`; rename it to `path` if all went well, remove it if not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _array(values: Any, type_: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(type_):
        # Arrow makes no dictionaries from NumPy's strings.
        return pa.array(list(values), type_.value_type, from_pandas=True).dictionary_encode()
    return pa.array(values, type_, from_pandas=True)


def write_table(path: str | Path, name: str, columns: Mapping[str, Any] | pa.Table) -> None:
    """Write a table of a declared kind, with its columns in any order; one that may hold nulls may be left out."""
    artefact = ARTEFACTS[name]
    given = columns.column_names if isinstance(columns, pa.Table) else list(columns)
    absent = [field for field in artefact.schema if field.nullable and field.name not in given]
    if set(given) | {field.name for field in absent} != set(artefact.schema.names):
        wrong = sorted((set(given) ^ set(artefact.schema.names)) - {field.name for field in absent})
        raise PlumblineError(
            f"A table '{name}' cannot be written to '{path}': its columns differ in {', '.join(wrong)}."
        )
    try:
        if isinstance(columns, pa.Table):
            for field in absent:
                columns = columns.append_column(field, pa.nulls(len(columns), field.type))
            table = columns.select(artefact.schema.names).cast(artefact.schema)
        else:
            rows = len(next(iter(columns.values())))
            columns = {**columns, **{field.name: [None] * rows for field in absent}}
            arrays = [_array(columns[field.name], field.type) for field in artefact.schema]
            table = pa.Table.from_arrays(arrays, schema=artefact.schema)
        table.validate(full=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError) as error:
        raise PlumblineError(f"A table '{name}' cannot be written to '{path}': {error}.") from error
    for field in artefact.schema:
        if not field.nullable and table[field.name].null_count:
            raise PlumblineError(
                f"A table '{name}' cannot be written to '{path}': column '{field.name}' has missing values."
            )
    stamp = {"plumbline.artefact": name, "plumbline.version": str(artefact.version)}
    with replacing(Path(path)) as temporary:
        pq.write_table(table.replace_schema_metadata(stamp), temporary, compression="zstd")


@contextmanager
def _reading_parquet(path: str | Path) -> Iterator[None]:
    """Tell in a sentence that a Parquet file is missing or damaged."""
    try:
        yield
    except FileNotFoundError as error:
        raise PlumblineError(f"The table '{path}' does not exist.") from error
    except (pa.ArrowException, OSError) as error:
        raise DamagedError(path, "is damaged and cannot be read as Parquet") from error


def _read_parquet(path: str | Path, columns: list[str] | None) -> pa.Table:
    with _reading_parquet(path):
        # Not the dataset reader: it would merge keys from the path into the table, and keys are columns here.
        return pq.ParquetFile(path).read(columns)


def read_table(path: str | Path, name: str, columns: list[str] | None = None) -> pa.Table:
    """Read a table of a declared kind; a damaged file, another kind or another version is refused with one sentence."""
    table = _read_parquet(path, columns)
    _check(path, name, table.schema, columns)
    return table


# Bytes of a part of a table that is read in parts.
PART = 2**24


def stream_table(path: str | Path, name: str, columns: list[str], part: int = PART) -> Iterator[pa.Table]:
    """The same in parts of about so many bytes, counted over all columns."""
    with _reading_parquet(path):
        file = pq.ParquetFile(path, memory_map=True)
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        each = sum(group.total_byte_size for group in groups) / max(1, file.metadata.num_rows)
        for batch in file.iter_batches(max(1, int(part / max(1, each))), columns=columns):
            table = pa.Table.from_batches([batch]).replace_schema_metadata(file.schema_arrow.metadata)
            _check(path, name, table.schema, columns)
            yield table


def first_rows(path: str | Path, name: str, columns: list[str], count: int) -> pa.Table:
    """The first rows of a table, at most so many; the others are not read into memory."""
    with _reading_parquet(path):
        file = pq.ParquetFile(path)
        batches = [next(file.iter_batches(count, columns=columns))] if file.metadata.num_rows else []
    schema = pa.schema([file.schema_arrow.field(column) for column in columns], file.schema_arrow.metadata)
    table = pa.Table.from_batches(batches, batches[0].schema if batches else schema)
    _check(path, name, table.schema.with_metadata(file.schema_arrow.metadata), columns)
    return table


def _check(path: str | Path, name: str, schema: pa.Schema, columns: list[str] | None) -> None:
    artefact = ARTEFACTS[name]
    stamp = schema.metadata or {}
    kind, version = stamp.get(b"plumbline.artefact", b"?").decode(), stamp.get(b"plumbline.version", b"?").decode()
    if kind != name or version != str(artefact.version):
        raise DamagedError(path, f"holds '{kind}' version {version}, not '{name}' version {artefact.version}")
    wanted = [field for field in artefact.schema if columns is None or field.name in columns]
    if [(f.name, f.type) for f in schema] != [(f.name, f.type) for f in wanted]:
        raise DamagedError(path, f"does not have the columns of '{name}' version {artefact.version}")


def read_stamped(path: str | Path) -> tuple[str, pa.Table]:
    """Read a table of any kind, with the kind it says it is; for tables that a user's protocol declared."""
    table = _read_parquet(path, None)
    return (table.schema.metadata or {}).get(b"plumbline.artefact", b"?").decode(), table


def write_arrays(path: str | Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named NumPy arrays as tensors, without torch."""
    from safetensors.numpy import save_file

    with replacing(Path(path)) as temporary:
        save_file({name: np.ascontiguousarray(array) for name, array in sorted(arrays.items())}, temporary)


def write_tensors(path: str | Path, tensors: "Mapping[str, torch.Tensor]") -> None:
    """Write named tensors."""
    from safetensors.torch import save_file

    with replacing(Path(path)) as temporary:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in sorted(tensors.items())}, temporary)


def read_tensors(path: str | Path, prefix: str = "") -> "dict[str, torch.Tensor]":
    """Read the tensors whose name starts with `prefix`, without it."""
    with _tensors(path) as file:
        names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118 - it is no dictionary
        return {name.removeprefix(prefix): file.get_tensor(name) for name in names}


def tensor_names(path: str | Path, prefix: str = "") -> list[str]:
    """The names of the tensors whose name starts with `prefix`, without it; the tensors are not read."""
    with _tensors(path) as file:
        return [name.removeprefix(prefix) for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118


@contextmanager
def _tensors(path: str | Path) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except FileNotFoundError as error:
        raise PlumblineError(f"The file '{path}' does not exist.") from error
    except (SafetensorError, OSError) as error:
        raise DamagedError(path, "is damaged and cannot be read as safetensors") from error


def write_text(path: str | Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with replacing(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write plain values, keys sorted."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: str | Path) -> Any:
    """Read plain values."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PlumblineError(f"The file '{path}' does not exist.") from error
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedError(path, "is damaged and cannot be read as JSON") from error


# What the record of a dataset has at least.
RECORDED = ("dataset", "classes", "splits", "dropped", "partial")


def read_record(path: str | Path) -> dict[str, Any]:
    """Read the record of a dataset, `dataset.json`; another form than that which `prepare` writes is refused."""
    found = read_json(path)
    lacking = [key for key in RECORDED if not isinstance(found, dict) or key not in found]
    if lacking or not isinstance(found["classes"], list):
        raise DamagedError(path, f"is not the record of a dataset: it has no {', '.join(lacking) or 'list of classes'}")
    return found
