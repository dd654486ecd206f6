"""Adversaries of one base model: a block of seeds compared with one run per seed."""

import sys
from collections.abc import Iterator

import numpy as np
import torch
from data import Task
from sizes import Sizes
from timing import Row, jobs, seconds

from plumbline.config.recipes import OBJECTIVE_TRAINING
from plumbline.models.budget import Budget
from plumbline.models.evaluator import Evaluator
from plumbline.models.objectives import objective_of
from plumbline.models.rows import Column
from plumbline.models.stored_attention import compute_attention
from plumbline.training.trainer import SeedSetup, split_rows, train_seeds

EPOCHS = {"cpu": 1, "cuda": 4}


def base_outputs(task: Task, device: str) -> dict[str, dict[str, Column]]:
    """The outputs of a base model that adversaries read; random weights cost as much as trained ones."""
    torch.manual_seed(0)
    evaluator = Evaluator(task.build().requires_grad_(False), 0, None, device)
    columns: dict[str, dict[str, Column]] = {}
    for split, instances in task.splits.items():
        tokens = [np.zeros((len(free), 1), dtype=np.float32) for free in instances.maskable]
        for row, free, weights in zip(tokens, instances.maskable, compute_attention(evaluator, instances), strict=True):
            row[free] = weights.T
        columns[split] = {"base_attention": tokens, "base_probabilities": evaluator.probabilities(instances)}
    return columns


def block(task: Task, seeds: list[int], device: str, columns: dict[str, dict[str, Column]]) -> None:
    """Train adversaries of these seeds in one block."""
    rows = split_rows(task.splits, task.classes, task.training, device, columns)
    train_seeds(
        SeedSetup(task.build, rows, task.training, record=device == "cuda", objective=objective_of("attefa")),
        seeds,
        Budget(),
    )


def task_of(texts: int, device: str) -> Task:
    """Random texts of SST's lengths, for a fixed number of epochs."""
    changes = {**OBJECTIVE_TRAINING["attefa"], "epochs": EPOCHS[device], "patience": None}
    return Task.random(texts, **changes)


def rows(device: str, sizes: Sizes) -> Iterator[Row]:
    """One job per seed compared with one for all, then the same in one process."""
    count, texts = sizes.adversary
    seeds, task = list(range(count)), task_of(texts, device)

    def row(how: str, slow: float, fast: float) -> Row:
        what = f"adversaries, {task.name}, epochs: {task.training.epochs}, {count} {how}, {device}"
        return Row(what, slow, fast, f"{slow / count:.2f} → {fast / count:.2f} s per seed")

    yield row(f"jobs of one seed (one of them timed) and one of {count}", *jobs(__file__, seeds, device, texts))
    columns = base_outputs(task, device)
    block(task, seeds[:1], device, columns)
    slow = seconds(lambda: [block(task, [seed], device, columns) for seed in seeds])
    fast = seconds(lambda: block(task, seeds, device, columns))
    yield row(f"runs of one seed and one of {count}, in one process", slow, fast)


if __name__ == "__main__":
    # A separate job, for `rows`.
    torch.set_num_threads(1)
    device, texts, *seeds = sys.argv[1:]
    task = task_of(int(texts), device)
    block(task, [int(seed) for seed in seeds], device, base_outputs(task, device))
