"""Data of the benchmarks, prepared datasets or random texts of SST's sizes, and models of published sizes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from plumbline.config.recipes import Training
from plumbline.data.instances import Instances
from plumbline.data.schemas import INSTANCES
from plumbline.data.vocabulary import EOS, SOS, SPECIALS
from plumbline.models.block import build_model
from plumbline.models.evaluator import Evaluator
from plumbline.registry import Declaration, Registry
from plumbline.store import read_json, read_table, read_tensors

WORDS, DIMENSIONS = 13_700, 300


def texts(count: int, mean: int, seed: int = 0, exactly: bool = False) -> Instances:
    """Random texts of Poisson-distributed or constant length; one word of each determines its label."""
    random = np.random.default_rng(seed)
    lengths = np.full(count, mean) if exactly else np.maximum(3, random.poisson(mean, size=count))
    words = [random.integers(len(SPECIALS) + 10, WORDS, size=length) for length in lengths]
    labels = np.arange(count, dtype=np.int32) % 2
    for text, label in zip(words, labels, strict=True):
        text[random.integers(len(text))] = len(SPECIALS) + label
    ids = [np.concatenate([[SOS], text, [EOS]]).astype(np.int32) for text in words]
    free = [np.concatenate([[False], np.ones(len(text), dtype=bool), [False]]) for text in words]
    return Instances(np.array(["test"] * count), np.arange(count), labels, ids, free)


def defaults(declaration: Declaration) -> dict[str, Any]:
    """The declared default options of an object."""
    return {name: option.default for name, option in declaration.options.items()}


class Task:
    """A dataset and a registered model with its training recipe."""

    def __init__(self, name: str, splits: dict[str, Instances], embedding: torch.Tensor, **changes: object) -> None:
        self.name, self.splits, self.embedding = name, splits, embedding
        self.classes = int(splits["train"].label.max()) + 1
        declaration = Registry().get("model", "bilstm-tanh")
        self.pointer, self.options = declaration.pointer, defaults(declaration)
        self.training = Training(**{**declaration.training, **changes})

    @classmethod
    def prepared(cls, folder: Path, **changes: object) -> "Task":
        """A dataset from the rules `prepare` and `embed`."""
        table = read_table(folder / "plain" / "instances.parquet", INSTANCES)
        splits = {split: Instances.from_table(table, [split]) for split in ("train", "dev", "test")}
        embedding = read_tensors(folder / "embedding.safetensors")["embedding"]
        return cls(read_json(folder / "dataset.json")["dataset"], splits, embedding, **changes)

    @classmethod
    def random(cls, train: int, **changes: object) -> "Task":
        """Random texts of SST's lengths and vocabulary."""
        sizes = {"train": train, "dev": train // 8, "test": train // 4}
        splits = {name: texts(count, 19, seed) for seed, (name, count) in enumerate(sizes.items())}
        embedding = torch.randn(WORDS, DIMENSIONS, generator=torch.Generator().manual_seed(0))
        embedding[0] = 0
        return cls(f"{train} random texts of 19 words", splits, embedding, **changes)

    def changed(self, **changes: object) -> "Task":
        """The same task with another training recipe."""
        return Task(self.name, self.splits, self.embedding, **{**self.training.model_dump(), **changes})

    @property
    def steps(self) -> int:
        """Optimiser steps of one epoch."""
        return -(-len(self.splits["train"]) // self.training.batch_size)

    def build(self) -> torch.nn.Module:
        """A fresh model."""
        return build_model(self.pointer, self.options, self.embedding, self.classes)


def test_texts(prepared: list[Path], count: int, mean: int, most: int | None = None) -> Iterator[tuple[str, Instances]]:
    """`count` random texts, or at most `most` test texts of each prepared dataset, with a name."""
    if not prepared:
        yield f"{count} random texts of {mean} words", texts(count, mean)
    for folder in prepared:
        task = Task.prepared(folder)
        sample = task.splits["test"].sampled(most, seed=0)
        yield f"{task.name} ({len(sample)} test texts)", sample


def spread(instances: Instances, count: int) -> np.ndarray:
    """The indices of `count` instances at evenly spaced quantiles of length."""
    order = np.argsort(instances.lengths, kind="stable")
    return order[((np.arange(count) + 0.5) * len(order) / count).astype(int)]


def build_evaluator(name: str, budget: int, device: str, words: int = WORDS, seed: int = 0) -> Evaluator:
    """A model of its published size with random weights."""
    torch.manual_seed(seed)
    declaration = Registry().get("model", name)
    model = build_model(declaration.pointer, defaults(declaration), torch.randn(words, DIMENSIONS), 2)
    return Evaluator(model.requires_grad_(False), seed, budget, device)
