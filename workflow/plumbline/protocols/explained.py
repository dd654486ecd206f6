"""What a protocol may read about one cell: predictions and importances, aligned instance by instance."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.attribution.files import read_importances
from plumbline.data.instances import Instances, optional, ragged, sample, taken
from plumbline.data.schemas import INSTANCES
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
    those of its second text and of its special tokens, where a measure tells them."""

    seed: int
    split: np.ndarray
    instance: np.ndarray
    predicted_class: np.ndarray
    scores: dict[str, list[np.ndarray]]
    pair: dict[str, list[np.ndarray] | None] = field(default_factory=dict)
    specials: dict[str, list[np.ndarray] | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Explained:
    """A cell with its predictions and importances; `texts` and `models` are for protocols that ask the models.

    `summary` is the record of the dataset, and of how it was manipulated, `model_options` what is set on the model.
    With `sample`, importances are of so many instances of each split, which every seed has drawn for itself.
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

    def truth(self) -> dict[str, Any]:
        """How the dataset was manipulated; nothing if it was not."""
        return read_json(self.summary).get("manipulation", {}) if self.summary else {}

    def regions(self) -> dict[Key, tuple[np.ndarray, np.ndarray | None]]:
        """The group of each word of an instance's text, and of its second text; nothing if nothing was manipulated."""
        assert self.texts
        named = ["split", "instance", "maskable", "maskable_b", "groups", "groups_b"]
        table = read_table(self.texts, INSTANCES, named)
        groups, seconds = optional(table["groups"]), optional(table["groups_b"])
        if groups is None:
            return {}
        free, pair_free = ragged(table["maskable"]), optional(table["maskable_b"])
        words = [own[there] for own, there in zip(groups, free, strict=True)]
        pair: list[np.ndarray | None] = [None] * len(table)
        if seconds is not None and pair_free is not None:
            pair = [own[there] for own, there in zip(seconds, pair_free, strict=True)]
        return dict(zip(_keys(table), zip(words, pair, strict=True), strict=True))

    def instances(self) -> Instances:
        """The instances that are explained, for protocols that ask the models."""
        assert self.texts
        return Instances.from_table(read_table(self.texts, INSTANCES), self.splits)

    def words(self) -> dict[Key, list[np.ndarray | None]]:
        """The word that each subword of a text is of, and of its second text; None where tokens are words."""
        assert self.texts
        table = read_table(self.texts, INSTANCES, ["split", "instance", "word", "word_b"])
        nothing: list[np.ndarray | None] = [None] * len(table)
        columns = [optional(table[column]) or nothing for column in ("word", "word_b")]
        return dict(zip(_keys(table), map(list, zip(*columns, strict=True)), strict=True))

    def by_seed(self) -> Iterator[Explanations]:
        """The explanations of each seed, all measures in the order of the predictions."""
        predictions = read_table(self.predictions, PREDICTIONS)
        tables = {measure: read_importances(path, measure) for measure, path in self.importances.items()}
        for seed in self.seeds:
            told = _rows(predictions, seed, self.splits)
            if self.sample is not None:
                told = told.take(sample(np.array(told["split"].to_pylist()), self.sample, seed))
            keys = _keys(told)
            found = {name: _rows(table, seed, self.splits) for name, table in tables.items()}
            places = {name: _places(table, keys, name, seed) for name, table in found.items()}
            probabilities = np.stack(ragged(told["probabilities"])) if keys else np.empty((0, 1))
            yield Explanations(
                seed,
                np.array([split for split, _ in keys]),
                np.array([instance for _, instance in keys], dtype=np.int32),
                probabilities.argmax(1).astype(np.int32),
                *(
                    {name: _aligned(table[column], places[name]) for name, table in found.items()}
                    for column in ("scores", "pair", "specials")
                ),
            )


def scores_of(protocol: Any) -> TableSchema:
    """The kind of table that holds a protocol's scores."""
    return getattr(protocol, "scores", SCORES)


def instance_columns(seed: int, instances: Instances, predicted_class: np.ndarray) -> dict[str, np.ndarray]:
    """The columns that say which instance a row of scores is about."""
    return {
        "seed": np.full(len(instances), seed),
        "split": instances.split,
        "instance": instances.instance,
        "predicted_class": predicted_class,
        "length": np.array([int(maskable.sum()) for maskable in instances.maskable], dtype=np.int32),
    }


def _rows(table: pa.Table, seed: int, splits: list[str]) -> pa.Table:
    here = pc.and_(pc.equal(table["seed"], seed), pc.is_in(table["split"].cast(pa.string()), pa.array(splits)))
    return table.filter(here)


def _keys(table: pa.Table) -> list[Key]:
    return list(zip(table["split"].to_pylist(), table["instance"].to_pylist(), strict=True))


def _places(table: pa.Table, keys: list[Key], measure: str, seed: int) -> list[int]:
    """Where a measure's table has each of the instances."""
    place = {key: i for i, key in enumerate(_keys(table))}
    lacking = [key for key in keys if key not in place]
    if lacking:
        raise PlumblineError(
            f"The importances of measure '{measure}', seed {seed}, lack {len(lacking)} of {len(keys)} instances, "
            f"the first being {lacking[0][0]} {lacking[0][1]}."
        )
    return [place[key] for key in keys]


def _aligned(column: pa.ChunkedArray, places: list[int]) -> Any:
    """The entries of a list column at these places; None if it has none at all."""
    return taken(optional(column), places)
