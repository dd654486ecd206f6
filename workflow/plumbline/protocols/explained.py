"""The inputs of a protocol for one cell: predictions and importances, aligned by instance."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.attribution.files import read_importances
from plumbline.data.instances import Instances, draw_sample, optional_ragged, ragged, take_rows
from plumbline.data.schemas import INSTANCES
from plumbline.data.vocabulary import MASK
from plumbline.errors import PlumblineError
from plumbline.protocols.schemas import SCORES
from plumbline.store import TableSchema, read_json, read_table
from plumbline.training.schemas import PREDICTIONS

if TYPE_CHECKING:
    from plumbline.models.evaluator import Evaluator

Key = tuple[str, int]


@dataclass(frozen=True)
class Explanations:
    """One seed's explained instances. `scores[measure][i]` has one number per word of instance i; `pair` and `specials`
    have those of its second text and of its special tokens, where a measure covers them."""

    seed: int
    split: np.ndarray
    instance: np.ndarray
    predicted_class: np.ndarray
    scores: dict[str, list[np.ndarray]]
    pair: dict[str, list[np.ndarray] | None] = field(default_factory=dict)
    specials: dict[str, list[np.ndarray] | None] = field(default_factory=dict)

    @property
    def keys(self) -> list[Key]:
        """The split and number of each instance."""
        return list(zip(self.split.tolist(), self.instance.tolist(), strict=True))


@dataclass(frozen=True)
class Explained:
    """A cell with its predictions and importances; `texts` and `models` are for protocols that query the models.

    `summary` is the record of the dataset and its manipulation, `model_options` are the model's configured options.
    With `sample`, importances cover that many instances of each split, drawn by each seed for itself. `recomputed` are
    the measures that the protocol may compute itself, `mask_id` is the id of the mask token and `masking` how words
    were masked while the model was trained.
    """

    predictions: Path
    importances: Mapping[str, Path]
    seeds: list[int]
    splits: list[str]
    texts: Path | None = None
    models: Callable[[], Iterable["Evaluator"]] = field(default=lambda: ())
    sample: int | None = None
    summary: Path | None = None
    model_options: Mapping[str, Any] = field(default_factory=dict)
    recomputed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    mask_id: int = MASK
    masking: str = "none"

    def compute(
        self, evaluator: "Evaluator", instances: Instances, measures: Iterable[str]
    ) -> dict[str, list[np.ndarray]]:
        """The scores of each word of instances by some of the recomputed measures, for a model of the protocol."""
        from plumbline.attribution.run import attribute, load_calls  # Imported late: most protocols need no torch.

        calls = load_calls({measure: self.recomputed[measure] for measure in measures})
        columns, _ = attribute([evaluator], instances, calls)
        return {measure: table["scores"] for measure, table in columns.items()}

    def record(self) -> dict[str, Any]:
        """The record of the dataset."""
        return read_json(self.summary) if self.summary else {}

    def manipulation(self) -> dict[str, Any]:
        """The record of the dataset's manipulation; empty if there was none."""
        return self.record().get("manipulation", {})

    def regions(self) -> dict[Key, tuple[np.ndarray, np.ndarray | None]]:
        """The group of each word in an instance's text and in its second text; empty without a manipulation."""
        assert self.texts
        columns = ["split", "instance", "maskable", "maskable_b", "groups", "groups_b"]
        table = read_table(self.texts, INSTANCES, columns)
        groups, groups_b = optional_ragged(table["groups"]), optional_ragged(table["groups_b"])
        if groups is None:
            return {}
        maskable, maskable_b = ragged(table["maskable"]), optional_ragged(table["maskable_b"])
        words = [own[mask] for own, mask in zip(groups, maskable, strict=True)]
        pair: list[np.ndarray | None] = [None] * len(table)
        if groups_b is not None and maskable_b is not None:
            pair = [own[mask] for own, mask in zip(groups_b, maskable_b, strict=True)]
        return dict(zip(_keys(table), zip(words, pair, strict=True), strict=True))

    def instances(self, splits: list[str] | None = None) -> Instances:
        """The explained instances, or those of other splits, for protocols that query the models."""
        assert self.texts
        return Instances.from_table(read_table(self.texts, INSTANCES), splits or self.splits)

    def words(self) -> dict[Key, list[np.ndarray | None]]:
        """The word index of each subword of a text, and of its second text; None where tokens are words."""
        assert self.texts
        table = read_table(self.texts, INSTANCES, ["split", "instance", "word", "word_b"])
        nothing: list[np.ndarray | None] = [None] * len(table)
        columns = [optional_ragged(table[column]) or nothing for column in ("word", "word_b")]
        return dict(zip(_keys(table), map(list, zip(*columns, strict=True)), strict=True))

    def by_seed(self) -> Iterator[Explanations]:
        """The explanations of each seed, all measures in the order of the predictions."""
        predictions = read_table(self.predictions, PREDICTIONS)
        tables = {measure: read_importances(path, measure) for measure, path in self.importances.items()}
        for seed in self.seeds:
            rows = select_rows(predictions, self.splits, seed)
            if self.sample is not None:
                rows = rows.take(draw_sample(np.array(rows["split"].to_pylist()), self.sample, seed))
            keys = _keys(rows)
            importances = {measure: select_rows(table, self.splits, seed) for measure, table in tables.items()}
            indices = {measure: _indices(table, keys, measure, seed) for measure, table in importances.items()}
            columns: list[Any] = [
                {
                    measure: take_rows(optional_ragged(table[column]), indices[measure])
                    for measure, table in importances.items()
                }
                for column in ("scores", "pair", "specials")
            ]
            probabilities = np.stack(ragged(rows["probabilities"])) if keys else np.empty((0, 1))
            yield Explanations(
                seed,
                np.array([split for split, _ in keys]),
                np.array([instance for _, instance in keys], dtype=np.int32),
                probabilities.argmax(1).astype(np.int32),
                *columns,
            )


def scores_of(protocol: Any) -> TableSchema:
    """The schema of a protocol's score table."""
    return getattr(protocol, "scores", SCORES)


def list_column(values: np.ndarray) -> np.ndarray:
    """The rows of a matrix as a column of lists."""
    column = np.empty(len(values), dtype=object)
    column[:] = [*values]
    return column


def instance_columns(seed: int, instances: Instances, predicted_class: np.ndarray) -> dict[str, np.ndarray]:
    """The columns that identify the instance of each row of scores."""
    return {
        "seed": np.full(len(instances), seed),
        "split": instances.split,
        "instance": instances.instance,
        "predicted_class": predicted_class,
        "length": np.array([int(maskable.sum()) for maskable in instances.maskable], dtype=np.int32),
    }


def join_columns(parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The columns of several parts of a score table, one after another."""
    return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}


def select_rows(table: pa.Table, splits: list[str], seed: int | None = None) -> pa.Table:
    """The rows of these splits and, if given, of this seed."""
    of_splits = pc.is_in(table["split"].cast(pa.string()), pa.array(splits))
    return table.filter(of_splits if seed is None else pc.and_(of_splits, pc.equal(table["seed"], seed)))


def _keys(table: pa.Table) -> list[Key]:
    return list(zip(table["split"].to_pylist(), table["instance"].to_pylist(), strict=True))


def _indices(table: pa.Table, keys: list[Key], measure: str, seed: int) -> list[int]:
    """The row of each instance in a measure's table."""
    index = {key: i for i, key in enumerate(_keys(table))}
    if missing := [key for key in keys if key not in index]:
        raise PlumblineError(
            f"The importances of measure '{measure}', seed {seed}, lack {len(missing)} of {len(keys)} instances, such "
            f"as instance {missing[0][1]} of split '{missing[0][0]}'."
        )
    return [index[key] for key in keys]
