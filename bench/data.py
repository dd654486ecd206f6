"""What the benchmarks run on: prepared datasets, or random texts of SST's sizes, and models of the studies' sizes."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from plumbline.config.recipes import Training
from plumbline.data.instances import Instances
from plumbline.data.schemas import INSTANCES
from plumbline.data.vocabulary import EOS, SOS, SPECIALS
from plumbline.models.block import build_model
from plumbline.models.evaluator import Evaluator
from plumbline.registry import Registry
from plumbline.store import read_json, read_table, read_tensors

WORDS, DIMENSIONS = 13_700, 300


def texts(count: int, mean: int, seed: int = 0, exactly: bool = False) -> Instances:
    """Random texts whose lengths vary as sentences' lengths do, or not at all; half of them hold a telling word."""
    random = np.random.default_rng(seed)
    lengths = np.full(count, mean) if exactly else np.maximum(3, random.poisson(mean, size=count))
    words = [random.integers(len(SPECIALS) + 10, WORDS, size=length) for length in lengths]
    labels = np.arange(count, dtype=np.int32) % 2
    for text, label in zip(words, labels, strict=True):
        text[random.integers(len(text))] = len(SPECIALS) + label
    ids = [np.concatenate([[SOS], text, [EOS]]).astype(np.int32) for text in words]
    free = [np.concatenate([[False], np.ones(len(text), dtype=bool), [False]]) for text in words]
    return Instances(np.array(["test"] * count), np.arange(count), labels, ids, free)


class Task:
    """A dataset and a registered model at its recipe, to be trained."""

    def __init__(self, name: str, splits: dict[str, Instances], embedding: torch.Tensor, **changes: object) -> None:
        self.name, self.splits, self.embedding = name, splits, embedding
        self.classes = int(splits["train"].label.max()) + 1
        declaration = Registry().get("model", "bilstm-tanh")
        self.pointer = declaration.pointer
        self.options = {key: option.default for key, option in declaration.options.items()}
        self.training = Training(**{**declaration.training, **changes})

    @classmethod
    def prepared(cls, folder: Path, **changes: object) -> "Task":
        """A dataset that the rules `prepare` and `embed` have made."""
        table = read_table(folder / "plain" / "instances.parquet", INSTANCES)
        splits = {split: Instances.from_table(table, [split]) for split in ("train", "dev", "test")}
        embedding = read_tensors(folder / "embedding.safetensors")["embedding"]
        return cls(read_json(folder / "dataset.json")["dataset"], splits, embedding, **changes)

    @classmethod
    def random(cls, train: int, **changes: object) -> "Task":
        """Random texts of SST's lengths and vocabulary."""
        splits = {name: texts(count, 19, seed) for seed, (name, count) in enumerate(_sizes(train).items())}
        embedding = torch.randn(WORDS, DIMENSIONS, generator=torch.Generator().manual_seed(0))
        embedding[0] = 0
        return cls(f"{train} random texts of 19 words", splits, embedding, **changes)

    def changed(self, **changes: object) -> "Task":
        """The same task with another recipe of training."""
        return Task(self.name, self.splits, self.embedding, **{**self.training.model_dump(), **changes})

    @property
    def steps(self) -> int:
        """Optimiser steps of one epoch."""
        return -(-len(self.splits["train"]) // self.training.batch_size)

    def build(self) -> torch.nn.Module:
        """A fresh model."""
        return build_model(self.pointer, self.options, self.embedding, self.classes)


def _sizes(train: int) -> dict[str, int]:
    return {"train": train, "dev": train // 8, "test": train // 4}


def test_texts(prepared: list[Path], count: int, mean: int, most: int | None = None) -> Iterator[tuple[str, Instances]]:
    """So many random texts, or the test texts of each prepared dataset, at most as many as it is said, with a name."""
    if not prepared:
        yield f"{count} random texts of {mean} words", texts(count, mean)
    for folder in prepared:
        task = Task.prepared(folder)
        some = task.splits["test"].sampled(most, seed=0)
        yield f"{task.name} ({len(some)} test texts)", some


def spread(instances: Instances, count: int) -> np.ndarray:
    """The places of a few instances, whose lengths are spread as those of all are."""
    order = np.argsort(instances.lengths, kind="stable")
    return order[((np.arange(count) + 0.5) * len(order) / count).astype(int)]


def evaluator(name: str, budget: int, device: str, words: int = WORDS, seed: int = 0) -> Evaluator:
    """A model of the study's size with random weights."""
    torch.manual_seed(seed)
    declaration = Registry().get("model", name)
    options = {key: option.default for key, option in declaration.options.items()}
    model = build_model(declaration.pointer, options, torch.randn(words, DIMENSIONS), 2).requires_grad_(False)
    return Evaluator(model, seed, budget, device)
