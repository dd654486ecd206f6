"""The stored artefacts of a study as plain Python values."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from safetensors import safe_open

PAD, UNK, SOS, EOS, MASK = range(5)
Row = dict[str, Any]


class Cell(NamedTuple):
    """A dataset, a variant of it, a model and a block of seeds."""

    dataset: str
    variant: str
    model: str
    seeds: str

    @property
    def folder(self) -> str:
        """Where it lies below the folder of a kind of artefact."""
        return "/".join(self)


class Text(NamedTuple):
    """What a model reads of an instance: ids and which of them are words, and the same of a second text."""

    ids: list[int]
    words: list[bool]
    pair: list[int] | None = None
    pair_words: list[bool] | None = None
    answers: list[int] | None = None

    @property
    def places(self) -> list[int]:
        """Where the words are."""
        return [place for place, word in enumerate(self.words) if word]

    def without(self, gone: set[int]) -> "Text":
        """The text with the tokens at these places deleted."""
        kept = [place for place in range(len(self.ids)) if place not in gone]
        return self._replace(ids=[self.ids[p] for p in kept], words=[self.words[p] for p in kept])


def read(path: Path) -> list[Row]:
    """All rows of a table."""
    return pq.ParquetFile(path).read().to_pylist()


def record(path: Path) -> Row:
    """A JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


class Results:
    """A folder of results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.instances = cache(self._instances)
        self.weights = cache(self._weights)
        self.masks = cache(self._masks)
        self.files = cache(self._files)

    def table(self, name: str) -> list[Row] | None:
        """The rows of a table of the study, if it has it."""
        path = self.folder / "tables" / f"{name}.parquet"
        return read(path) if path.exists() else None

    def cells(self, kind: str, file: str) -> Iterator[tuple[Cell, Path]]:
        """The cells with such a file below `models` or `attributions`."""
        root = self.folder / kind
        for path in sorted(root.rglob(file)):
            dataset, *variant, model, seeds = path.relative_to(root).parts[:-1]
            yield Cell(dataset, "/".join(variant), model, seeds), path

    def scores(self, kind: str) -> Iterator[tuple[str, Cell, Row, list[Row]]]:
        """The scores of all protocols of a kind: the protocol's name, the cell, what it was asked, and the rows."""
        root = self.folder / "scores"
        for path in sorted(root.rglob("*.parquet")):
            protocol, dataset, *variant, model, _ = path.relative_to(root).parts
            asked = record(path.with_suffix(".json"))["config"]
            if asked.get("object", "").endswith(f":{kind}"):
                yield protocol, Cell(dataset, "/".join(variant), model, path.stem), asked, read(path)

    def _files(self, cell: Cell) -> dict[str, Path]:
        """The file of each measure that explains a cell, which may hold several; two files of one are an error."""
        found: dict[str, Path] = {}
        for path in sorted((self.folder / "attributions" / cell.folder).glob("*.parquet")):
            for measure in dict.fromkeys(pq.ParquetFile(path).read(["measure"])["measure"].to_pylist()):
                if measure in found:
                    raise ValueError(f"{measure} is in '{found[measure]}' and in '{path}'")
                found[measure] = path
        return found

    def importances(self, cell: Cell, measure: str, count: int | None = None) -> list[Row]:
        """The stored importances of a measure in their order, or the first of them."""
        table = pq.ParquetFile(self.files(cell)[measure]).read()
        return table.filter(pc.equal(table["measure"].cast("string"), measure)).slice(0, count).to_pylist()

    def model(self, cell: Cell) -> Row:
        """What a model was made of: its object, options and training."""
        return record(self.folder / "models" / cell.folder / "manifest.json")["config"]

    def summary(self, dataset: str, variant: str) -> Row:
        """The record of a dataset, or of a manipulated variant of it."""
        own = self.folder / "data" / dataset / variant / "dataset.json"
        return record(own if own.exists() else self.folder / "data" / dataset / "dataset.json")

    def _instances(self, dataset: str, variant: str) -> dict[tuple[str, int], Row]:
        """The instances that a variant is made of, by split and number; masked ones before they are masked."""
        own = self.folder / "data" / dataset / variant / "instances.parquet"
        path = own if own.exists() else self.folder / "data" / dataset / "plain" / "instances.parquet"
        return {(row["split"], row["instance"]): row for row in read(path)}

    def _weights(self, cell: Cell) -> dict[int, dict[str, torch.Tensor]]:
        """The weights of each seed of a cell, in double precision."""
        found: dict[int, dict[str, torch.Tensor]] = {}
        with safe_open(self.folder / "models" / cell.folder / "weights.safetensors", "pt") as file:
            for name in file.keys():  # noqa: SIM118 - it is no dictionary
                seed, _, rest = name.partition("/")
                if seed.isdigit():
                    found.setdefault(int(seed), {})[rest] = file.get_tensor(name).double()
        return found

    def _masks(self, dataset: str, variant: str, model: str, seeds: str) -> dict[tuple[int, str, int], list[bool]]:
        """Which words of each text are masked in a variant, by seed, split and number."""
        path = self.folder / "models" / dataset / variant / model / seeds / "masks.parquet"
        return {(row["seed"], row["split"], row["instance"]): row["masked"] for row in read(path)}

    def text(self, cell: Cell, seed: int, split: str, number: int) -> Text:
        """What the model of a cell and seed reads of an instance."""
        row = self.instances(cell.dataset, cell.variant)[split, number]
        ids, words, pair = list(row["ids"]), row["maskable"], row["ids_b"]
        masked = cell.variant.removeprefix("positions/")
        places = [place for place, word in enumerate(words) if word]
        if cell.variant.startswith("positions/"):
            for place in places:
                ids[place] = UNK
            pair = None if pair is None else [UNK] * len(pair)
        if masked.startswith(("roar/", "recursive/")):
            flags = self.masks(cell.dataset, masked, cell.model, cell.seeds)[seed, split, number]
            for place, flag in zip(places, flags, strict=True):
                ids[place] = MASK if flag else ids[place]
        second = row["maskable_b"] if row["maskable_b"] is not None else pair and [True] * len(pair)
        return Text(ids, words, pair, second, row["answers"])
