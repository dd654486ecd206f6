"""A block of seeds in the engine against an ordinary loop, seed by seed, on prepared data."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from timing import Row
from torch.nn.functional import cross_entropy

from plumbline.config.recipes import Training
from plumbline.data.instances import Instances
from plumbline.models.batch import collate
from plumbline.models.block import build
from plumbline.models.devices import arithmetic
from plumbline.models.evaluator import Evaluator
from plumbline.models.learner import batch_order, class_weights, parameter_groups
from plumbline.models.performance import PERFORMANCE
from plumbline.models.trainer import split_rows, train_seeds
from plumbline.registry import Registry
from plumbline.store import read_json, read_table, read_tensors


class Task:
    """A prepared dataset and a registered model, at the study's recipe."""

    def __init__(self, folder: Path, model: str, **changes: object) -> None:
        table = read_table(folder / "plain" / "instances.parquet", "instances")
        self.splits = {split: Instances.from_table(table, [split]) for split in ("train", "dev", "test")}
        self.classes = len(read_json(folder / "dataset.json")["classes"])
        self.embedding = read_tensors(folder / "embedding.safetensors")["embedding"]
        declaration = Registry().get("model", model)
        self.pointer = declaration.pointer
        self.options = {key: option.default for key, option in declaration.options.items()}
        self.training = Training(**{**declaration.training, **changes})

    def build(self) -> torch.nn.Module:
        return build(self.pointer, self.options, self.embedding, self.classes)


def plain(task: Task, seeds: list[int], device: str) -> tuple[list[float], list[list[float]]]:
    """The loop that everybody writes: batch after batch from the host, the loss read at every step.

    Returns each seed's test F1 and its losses, batch by batch, of the first epoch.
    """
    found, curves = [], []
    for seed in seeds:
        torch.manual_seed(seed)
        random = np.random.default_rng(seed)
        model = task.build().to(device)
        train, dev = task.splits["train"], task.splits["dev"]
        weights = torch.from_numpy(class_weights(train.label, task.classes, task.training.class_weights)).to(device)
        groups = parameter_groups(model, task.training)
        optimiser = torch.optim.Adam(groups, lr=task.training.learning_rate, amsgrad=True)
        best, kept = -np.inf, {}
        curve = []
        for epoch in range(1, task.training.epochs + 1):
            model.train()
            for index in batch_order(train.lengths, task.training, random):
                batch = collate([train.ids[i] for i in index], [train.maskable[i] for i in index], device)
                labels = torch.from_numpy(train.label[index]).long().to(device)
                loss = (cross_entropy(model(batch).logits, labels, reduction="none") * weights[labels]).sum()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                if epoch == 1:
                    curve.append(loss.item() / len(index))
                else:
                    loss.item()
            score = PERFORMANCE[task.training.select_by](Evaluator(model, seed, 16384, device).predict(dev), dev.label)
            if epoch >= task.training.first_eligible_epoch and score > best:
                best, kept = score, {name: tensor.clone() for name, tensor in model.state_dict().items()}
        model.load_state_dict(kept)
        told = Evaluator(model, seed, 16384, device).predict(task.splits["test"])
        found.append(PERFORMANCE["f1"](told, task.splits["test"].label))
        curves.append(curve)
    return found, curves


def engine(task: Task, seeds: list[int], device: str, record: bool) -> list[float]:
    """The same training by the trainer. Returns each seed's test F1."""
    rows = split_rows(task.splits, task.classes, task.training, device)
    trained = train_seeds(task.build, rows, task.training, seeds, 65536, record)
    return [PERFORMANCE["f1"](one.probabilities["test"], task.splits["test"].label) for one in trained]
