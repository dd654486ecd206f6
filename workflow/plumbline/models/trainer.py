"""Training: a block of seeds on one dataset, each seed by itself and reproducible to the byte on one machine."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from plumbline.config.recipes import Training
from plumbline.data.instances import Instances
from plumbline.models.batch import collate
from plumbline.models.block import build
from plumbline.models.evaluator import Evaluator
from plumbline.models.performance import PERFORMANCE


@dataclass(frozen=True)
class Trained:
    """One seed's model at its chosen epoch, and how it got there."""

    state: dict[str, torch.Tensor]
    history: list[dict[str, Any]]
    chosen_epoch: int


def class_weights(labels: np.ndarray, classes: int, how: str) -> torch.Tensor:
    """Weight per class: size of class 0 over its own size (Jain & Wallace: N_neg / N_pos for positives), or 1."""
    if how == "none":
        return torch.ones(classes)
    counts = np.bincount(labels, minlength=classes)
    return torch.tensor(counts[0] / counts, dtype=torch.float32)


def batch_order(lengths: np.ndarray, training: Training, random: np.random.Generator) -> list[np.ndarray]:
    """The batches of one epoch. `length-noise` sorts by length, off by up to 10%, so that there is little padding."""
    if training.batching == "length-noise":
        reach = 0.1 * lengths
        order = np.argsort(lengths + np.floor(random.uniform(-reach, reach)), kind="stable")
    else:
        order = random.permutation(len(lengths))
    cuts = np.split(order, range(training.batch_size, len(order), training.batch_size))
    return [cuts[i] for i in random.permutation(len(cuts))]


def parameter_groups(model: nn.Module, training: Training) -> list[dict[str, Any]]:
    """Parameters with and without weight decay."""
    decay: list[nn.Parameter] = []
    free: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            (free if name.startswith(tuple(training.no_decay)) else decay).append(parameter)
    groups = [{"params": decay, "weight_decay": training.weight_decay}, {"params": free, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def _epochs(
    model: nn.Module, instances: Instances, training: Training, classes: int, seed: int, device: torch.device | str
) -> Iterator[float]:
    """Train epoch by epoch; yields the mean loss of each."""
    random = np.random.default_rng(seed)
    weights = class_weights(instances.label, classes, training.class_weights).to(device)
    # AMSGrad, and L2 as a term of the gradient: Adam's `weight_decay`, not AdamW's.
    optimiser = torch.optim.Adam(parameter_groups(model, training), lr=training.learning_rate, amsgrad=True, fused=True)
    for _ in range(training.epochs):
        model.train()
        total = torch.zeros((), device=device)
        for index in batch_order(instances.lengths, training, random):
            batch = collate([instances.ids[i] for i in index], [instances.maskable[i] for i in index], device)
            labels = torch.from_numpy(instances.label[index]).long().to(device)
            # The studies sum the loss over the batch; under Adam this only weakens the decay relative to a mean.
            loss = (cross_entropy(model(batch).logits, labels, reduction="none") * weights[labels]).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.detach()
        yield float(total) / len(instances)


def train_seed(
    build: Callable[[], nn.Module],
    splits: Mapping[str, Instances],
    training: Training,
    classes: int,
    seed: int,
    token_budget: int,
    device: torch.device | str = "cpu",
) -> Trained:
    """Train one seed and keep the eligible epoch with the best score on the selection split."""
    torch.manual_seed(seed)
    model = build().to(device)
    evaluator = Evaluator(model, seed, token_budget, device)
    selection = splits[training.select_on]
    history: list[dict[str, Any]] = []
    best, chosen = -np.inf, 0
    state: dict[str, torch.Tensor] = {}
    started = time.perf_counter()
    losses = _epochs(model, splits["train"], training, classes, seed, device)
    progress = tqdm(losses, total=training.epochs, desc=f"seed {seed}", unit="epoch", disable=None)
    for epoch, loss in enumerate(progress, start=1):
        model.eval()
        probabilities = evaluator.predict(selection)
        seconds = time.perf_counter() - started
        rows = [("train", "loss", loss)]
        rows += [
            (training.select_on, name, score(probabilities, selection.label)) for name, score in PERFORMANCE.items()
        ]
        history += [
            {"seed": seed, "epoch": epoch, "split": split, "metric": metric, "value": value, "seconds": seconds}
            for split, metric, value in rows
        ]
        value = dict((metric, value) for _, metric, value in rows)[training.select_by]
        progress.set_postfix(loss=f"{loss:.3f}", **{training.select_by: f"{value:.3f}"})
        if epoch >= training.first_eligible_epoch and (value > best or not state):
            best, chosen = (value if np.isfinite(value) else best), epoch
            state = {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}
        if not np.isfinite(loss):
            break
    if not state:
        state = {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}
        chosen = epoch
    return Trained(state, history, chosen)


def train_block(
    pointer: str,
    options: Mapping[str, Any],
    embedding: torch.Tensor,
    trainable: bool,
    splits: Mapping[str, Instances],
    classes: int,
    training: Training,
    seeds: list[int],
    token_budget: int,
    device: torch.device | str = "cpu",
) -> tuple[dict[str, torch.Tensor], dict[str, list[Any]], dict[str, list[Any]]]:
    """Train every seed. Returns the weights, named ``seed/parameter``, and the columns of history and predictions."""
    weights: dict[str, torch.Tensor] = {}
    history: dict[str, list[Any]] = {key: [] for key in ("seed", "epoch", "split", "metric", "value", "seconds")}
    predictions: dict[str, list[Any]] = {key: [] for key in ("seed", "split", "instance", "label", "probabilities")}
    for seed in seeds:
        trained = train_seed(
            lambda: build(pointer, options, embedding, classes, trainable),
            splits, training, classes, seed, token_budget, device,
        )  # fmt: skip
        weights |= {f"{seed}/{name}": tensor for name, tensor in trained.state.items()}
        chosen = {"seed": seed, "epoch": trained.chosen_epoch, "split": training.select_on, "metric": "chosen_epoch"}
        for row in [
            *trained.history,
            {**chosen, "value": trained.chosen_epoch, "seconds": trained.history[-1]["seconds"]},
        ]:
            for key, value in row.items():
                history[key].append(value)
        model = build(pointer, options, embedding, classes, trainable)
        model.load_state_dict(trained.state)
        evaluator = Evaluator(model, seed, token_budget, device)
        for instances in splits.values():
            predictions["seed"] += [seed] * len(instances)
            predictions["split"] += instances.split.tolist()
            predictions["instance"] += instances.instance.tolist()
            predictions["label"] += instances.label.tolist()
            predictions["probabilities"] += list(evaluator.predict(instances))
    return weights, history, predictions
