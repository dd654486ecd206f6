"""Adversaries of one base model: a block of nine seeds against nine runs of one seed."""

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import torch
from data import Task
from timing import Row, seconds

from plumbline.config.recipes import OBJECTIVE_TRAINING
from plumbline.models.budget import Budget
from plumbline.models.evaluator import Evaluator
from plumbline.models.objectives import objective_of
from plumbline.models.rows import Column
from plumbline.models.trainer import split_rows, train_seeds
from plumbline.models.weights import weights_of

SEEDS = list(range(9))
TEXTS = {"cpu": 800, "cuda": 6400}
EPOCHS = {"cpu": 1, "cuda": 4}


def base_outputs(task: Task, device: str) -> dict[str, dict[str, Column]]:
    """What adversaries read of a base model; with random weights it costs as much as with trained ones."""
    torch.manual_seed(0)
    evaluator = Evaluator(task.build().requires_grad_(False), 0, None, device)
    columns: dict[str, dict[str, Column]] = {}
    for split, instances in task.splits.items():
        found = weights_of(evaluator, instances)
        tokens = [np.zeros((len(free), 1), dtype=np.float32) for free in instances.maskable]
        for spread, free, weights in zip(tokens, instances.maskable, found, strict=True):
            spread[free] = weights.T
        columns[split] = {"base_attention": tokens, "base_probabilities": evaluator.probabilities(instances)}
    return columns


def block(task: Task, seeds: list[int], device: str, columns: dict[str, dict[str, Column]]) -> None:
    """Train adversaries of these seeds in one go."""
    rows = split_rows(task.splits, task.classes, task.training, device, columns)
    train_seeds(task.build, rows, task.training, seeds, Budget(), device == "cuda", objective_of("attefa"))


def task_of(device: str) -> Task:
    """Random texts of SST's lengths, for a fixed number of epochs."""
    changes = {**OBJECTIVE_TRAINING["attefa"], "epochs": EPOCHS[device], "patience": None}
    return Task.random(TEXTS[device], **changes)


def rows(device: str) -> Iterator[Row]:
    """Nine seeds as nine jobs and as one, with the start of each process; then in one process."""

    def job(seeds: list[int]) -> None:
        subprocess.run([sys.executable, __file__, device, *map(str, seeds)], check=True, capture_output=True)

    task = task_of(device)
    what = f"adversaries, {task.name}, epochs: {task.training.epochs}, nine"
    slow = 9 * seconds(lambda: job(SEEDS[:1]))
    fast = seconds(lambda: job(SEEDS))
    per_seed = "{:.2f} → {:.2f} s per seed".format
    yield Row(
        f"{what} jobs of one seed (one of them timed) and one of nine, {device}",
        slow,
        fast,
        per_seed(slow / 9, fast / 9),
    )
    columns = base_outputs(task, device)
    block(task, SEEDS[:1], device, columns)
    slow = seconds(lambda: [block(task, [seed], device, columns) for seed in SEEDS])
    fast = seconds(lambda: block(task, SEEDS, device, columns))
    yield Row(
        f"{what} runs of one seed and one of nine, in one process, {device}", slow, fast, per_seed(slow / 9, fast / 9)
    )


if __name__ == "__main__":
    # A job of its own.
    torch.set_num_threads(1)
    device, *seeds = sys.argv[1:]
    task = task_of(device)
    block(task, [int(seed) for seed in seeds], device, base_outputs(task, device))
