"""A block of seeds in the engine, compared with an ordinary loop, seed by seed."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from data import Task
from sizes import Sizes
from timing import Row, jobs, seconds
from torch.nn.functional import cross_entropy

from plumbline.models.batch import collate
from plumbline.models.budget import Budget
from plumbline.models.encoders import BiLSTM
from plumbline.models.evaluator import Evaluator
from plumbline.runtime.devices import arithmetic
from plumbline.training.learner import Learner, batch_order, class_weights
from plumbline.training.optimisers import parameter_groups
from plumbline.training.performance import PERFORMANCE_METRICS
from plumbline.training.stack import Stack
from plumbline.training.trainer import SeedSetup, split_rows, train_seeds


def plain(task: Task, seeds: list[int], device: str) -> tuple[list[float], list[list[float]]]:
    """An ordinary training loop: batches from the host, the loss read at every step.

    Returns each seed's test F1 and its mean losses, batch by batch, of the first epoch.
    """
    scores, curves = [], []
    train, dev, test = (task.splits[name] for name in ("train", "dev", "test"))
    for seed in seeds:
        torch.manual_seed(seed)
        random = np.random.default_rng(seed)
        model = task.build().to(device)
        weights = torch.from_numpy(class_weights(train.label, task.classes, task.training.class_weights)).to(device)
        groups = [
            {"params": p, "weight_decay": decay}
            for p, decay in parameter_groups(model.named_parameters(), task.training)
        ]
        optimiser = torch.optim.Adam(groups, lr=task.training.learning_rate, amsgrad=True)
        best, kept = -np.inf, {}
        curves.append([])
        for epoch in range(1, task.training.epochs + 1):
            model.train()
            for index in batch_order(train.lengths, task.training, random):
                batch = collate([train.ids[i] for i in index], [train.maskable[i] for i in index], device)
                labels = torch.from_numpy(train.label[index]).long().to(device)
                loss = (cross_entropy(model(batch).logits, labels, reduction="none") * weights[labels]).sum()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                mean_loss = loss.item() / len(index)
                if epoch == 1:
                    curves[-1].append(mean_loss)
            probabilities = Evaluator(model, seed, 16384, device).probabilities(dev)
            score = PERFORMANCE_METRICS[task.training.select_by](probabilities, dev.label)
            if epoch >= task.training.first_eligible_epoch and score > best:
                best, kept = score, {name: tensor.clone() for name, tensor in model.state_dict().items()}
        model.load_state_dict(kept)
        scores.append(PERFORMANCE_METRICS["f1"](Evaluator(model, seed, 16384, device).probabilities(test), test.label))
    return scores, curves


def engine(task: Task, seeds: list[int], device: str) -> list[float]:
    """The same training by the trainer, with predictions on all splits. Returns each seed's test F1."""
    rows = split_rows(task.splits, task.classes, task.training, device)
    trained = train_seeds(SeedSetup(task.build, rows, task.training, record=device == "cuda"), seeds, Budget())
    return [PERFORMANCE_METRICS["f1"](seed.probabilities["test"], task.splits["test"].label) for seed in trained]


def first_epoch(task: Task, seed: int, device: str) -> list[float]:
    """The engine's mean losses, batch by batch, of the first epoch."""
    rows = split_rows(task.splits, task.classes, task.training, device)
    torch.manual_seed(seed)
    budget, record = Budget(), device == "cuda"
    learner = Learner(task.build(), seed, rows, task.training, budget, record=record)
    totals = [0.0]
    counts = learner.begin_epoch()
    for number in range(len(counts)):
        learner.step(number)
        if record:
            torch.cuda.synchronize()
        totals.append(float(learner._loss))
    learner.finish()
    return (np.diff(totals) / counts).tolist()


def replayed(task: Task, seeds: list[int], stacked: bool = False) -> float:
    """Seconds per model step when several seeds replay a recorded epoch, on a stream each or stacked."""
    rows = split_rows(task.splits, task.classes, task.training, "cuda")
    learners = []
    stream = torch.cuda.Stream() if stacked else None
    for seed in seeds:
        torch.manual_seed(seed)
        options: dict[str, Any] = {"record": not stacked, "stack": stacked, "stream": stream}
        learners.append(Learner(task.build(), seed, rows, task.training, Budget(), **options))
    trainees: Sequence[Learner | Stack] = [Stack(learners, stream)] if stacked else learners

    def epoch() -> None:
        for number in range(task.steps):
            for trainee in trainees:
                trainee.step(number)

    for _ in range(3):
        for trainee in trainees:
            trainee.begin_epoch()
        taken = seconds(epoch)
    for one in {*trainees, *learners}:
        one.finish()
    return taken / task.steps / len(seeds)


def recurrence(task: Task, seeds: list[int]) -> Row:
    """An epoch of replayed steps, with PyTorch's LSTM and with our kernels."""
    ours = replayed(task, seeds)
    with patch.object(BiLSTM, "_kernels", lambda *_: None):
        layers = replayed(task, seeds)
    steps = len(seeds) * task.steps
    note = f"{layers * 1e3:.3f} → {ours * 1e3:.3f} ms per model step"
    return Row(f"an epoch's replayed steps, {task.name}, {len(seeds)} seeds, cuda", layers * steps, ours * steps, note)


def stack(task: Task, seeds: list[int]) -> Row:
    """An epoch of replayed steps, with the seeds on streams and stacked."""
    shuffled = task.changed(batching="shuffle")
    streams, one = replayed(shuffled, seeds), replayed(shuffled, seeds, stacked=True)
    steps = len(seeds) * task.steps
    note = f"{streams * 1e3:.3f} → {one * 1e3:.3f} ms per model step"
    return Row(f"the same, streams and one stack, {task.name}, shuffled, cuda", streams * steps, one * steps, note)


def on_the_gpu(task: Task, seeds: list[int]) -> Iterator[Row]:
    """Whole training of several seeds: the plain loop at PyTorch's defaults, the engine in each precision."""
    with arithmetic():
        _, curves = plain(task.changed(epochs=1, first_eligible_epoch=1), seeds[:2], "cuda")
    exact = task.changed(precision="float32")
    gaps = [np.abs(np.subtract(curves[i], first_epoch(exact, seeds[i], "cuda"))).max() for i in range(len(curves))]
    engine(task.changed(epochs=2), seeds[:1], "cuda")
    scores: dict[str, list[float]] = {}
    slow = seconds(lambda: scores.update(plain=plain(task, seeds, "cuda")[0]))
    yield recurrence(task, seeds)
    yield stack(task, seeds)
    steps = len(seeds) * task.training.epochs * task.steps
    for precision in ("float32", "tf32", "bfloat16"):
        changed = task.changed(precision=precision)
        fast = min(seconds(lambda: scores.update(ours=engine(changed, seeds, "cuda"))) for _ in range(2))  # noqa: B023
        means = [f"{np.mean(scores[key]):.3f} ± {np.std(scores[key], ddof=1):.3f}" for key in ("plain", "ours")]
        alone = replayed(changed, seeds) * 1e3
        note = (
            f"{slow / steps * 1e3:.2f} → {fast / steps * 1e3:.3f} ms per model step, replayed steps alone {alone:.3f}"
        )
        note += f"; test F1 {' → '.join(means)}"
        if precision == "float32":
            note += f"; losses of the first epoch differ by at most {max(gaps):.1e}"
        what = f"training, {task.name}, {len(seeds)} seeds, {task.training.epochs} epochs, {precision}, cuda"
        yield Row(what, slow, fast, note)


def on_the_cpu(task: Task, seeds: list[int]) -> Iterator[Row]:
    """One job per seed compared with one for all, then the plain loop with the engine in one process."""
    what, count = f"training, {task.name}, 1 epoch", len(seeds)
    slow, fast = jobs(__file__, seeds, len(task.splits["train"]))
    yield Row(f"{what}, {count} jobs of one seed (one of them timed) and one of {count}, cpu", slow, fast)
    # PyTorch's first optimiser imports its compiler, which takes seconds.
    plain(one_epoch(32), seeds[:1], "cpu")
    few = seeds[:2]
    slow = seconds(lambda: plain(task, few, "cpu"))
    fast = seconds(lambda: engine(task, few, "cpu"))
    steps = len(few) * task.steps
    note = f"{slow / steps * 1e3:.0f} → {fast / steps * 1e3:.0f} ms per model step"
    yield Row(f"{what}, seeds: {len(few)}, in one process, cpu", slow, fast, note)


def one_epoch(texts: int) -> Task:
    """The task of a job on the CPU."""
    return Task.random(texts, epochs=1, first_eligible_epoch=1)


def rows(device: str, sizes: Sizes, prepared: list[Path], epochs: int) -> Iterator[Row]:
    """Prepared datasets on a GPU; random texts of SST's sizes on the CPU."""
    seeds = list(range(sizes.training.seeds))
    if device == "cuda":
        for folder in prepared:
            yield from on_the_gpu(Task.prepared(folder, epochs=epochs), seeds)
        if not prepared:
            yield from on_the_gpu(Task.random(sizes.training.texts, epochs=epochs), seeds)
    else:
        yield from on_the_cpu(one_epoch(sizes.training.texts), seeds)


if __name__ == "__main__":
    # A separate job, for `on_the_cpu`.
    torch.set_num_threads(1)
    texts, *seeds = map(int, sys.argv[1:])
    engine(one_epoch(texts), seeds, "cpu")
