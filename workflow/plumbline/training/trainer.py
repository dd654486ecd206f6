"""Training: a block of seeds on one dataset, each seed by itself and reproducible to the byte on one machine."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import nn

from plumbline.config.recipes import Training
from plumbline.data.corpus import SPLITS
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.block import build_model, checkpoint_prefix
from plumbline.models.budget import Budget, out_of_memory
from plumbline.models.objectives import Classification
from plumbline.models.rows import Column, DeviceRows
from plumbline.runtime.progress import Progress
from plumbline.training.learner import Learner, MetricKey, class_weights, outputs

LOSS = MetricKey("train", "loss")
# Rows that all seeds share, or those of each seed.
SeedRows = Mapping[str, DeviceRows] | Callable[[int], Mapping[str, DeviceRows]]


@dataclass(frozen=True)
class Trained:
    """One seed's model at its chosen epoch, and how it got there; `checkpoints` are those of other epochs kept."""

    state: dict[str, torch.Tensor]
    history: list[dict[str, Any]]
    chosen_epoch: int
    probabilities: dict[str, np.ndarray]
    checkpoints: dict[int, dict[str, torch.Tensor]] = field(default_factory=dict)


def split_rows(
    splits: Mapping[str, Instances],
    classes: int,
    training: Training,
    device: torch.device | str,
    columns: Mapping[str, Mapping[str, Column]] | None = None,
) -> dict[str, DeviceRows]:
    """The splits on the device, every row with the weight of its class and with what `columns` adds to its split."""
    weight = class_weights(splits["train"].label, classes, training.class_weights)
    return {
        name: DeviceRows(split, device, {"weight": weight[split.label], **(columns or {}).get(name, {})})
        for name, split in splits.items()
    }


def train_together(
    build: Callable[[], nn.Module],
    rows: SeedRows,
    training: Training,
    seeds: list[int],
    budget: Budget,
    record: bool = False,
    objective: Classification | None = None,
    predicted: Sequence[str] = SPLITS,
) -> list[Trained]:
    """Train seeds step by step in turn, each on its rows; recorded ones run side by side on a GPU."""
    own = {seed: rows(seed) if callable(rows) else rows for seed in seeds}
    learners = []
    for seed in seeds:
        torch.manual_seed(seed)
        learners.append(Learner(build(), seed, own[seed], training, budget, objective, record))
    size = len(own[seeds[0]]["train"])
    history: dict[int, list[dict[str, Any]]] = {seed: [] for seed in seeds}
    named = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    progress = Progress(len(seeds) * training.epochs * size, named, "row")
    started = time.perf_counter()
    active = learners
    for epoch in range(1, training.epochs + 1):
        counts = [learner.begin_epoch() for learner in active]
        progress.describe(f"{named}, epoch {epoch}/{training.epochs}", len(counts[0]))
        for number, taken in enumerate(zip(*counts, strict=True)):
            for learner in active:
                learner.step(number)
            progress.update(sum(taken))
        for learner in active:
            learner.end_epoch(epoch)
            learner.draw_order()
        for learner in active:
            told = learner.read_epoch(epoch)
            history[learner.seed] += [
                {
                    "seed": learner.seed, "epoch": epoch, "split": split, "metric": metric, "value": value,
                    "seconds": time.perf_counter() - started,
                }
                for (split, metric), value in told.items()
            ]  # fmt: skip
            shown = dict.fromkeys([LOSS, *learner.deciding.values()])
            progress.note(", ".join(f"{' '.join(key)} {told[key]:.3f}" for key in shown))
        going = [learner for learner in active if not learner.done and np.isfinite(learner.history[-1][LOSS])]
        progress.shorten((len(active) - len(going)) * (training.epochs - epoch) * size)
        active = going
        if not active:
            break
    progress.close()
    # Texts of different seeds differ in words, not in length.
    plans = {name: own[seeds[0]][name].planned(learners[0].model, budget) for name in predicted}
    trained = []
    for learner in learners:
        chosen = learner.finish()
        state = {name: tensor.detach().cpu() for name, tensor in learner.model.state_dict().items()}
        told_of = {
            name: outputs(learner.model, learner.objective, own[learner.seed][name], plan)[0].cpu().numpy()
            for name, plan in plans.items()
        }
        trained.append(Trained(state, history[learner.seed], chosen, told_of, learner.checkpoints))
    return trained


def train_seeds(
    build: Callable[[], nn.Module],
    rows: SeedRows,
    training: Training,
    seeds: list[int],
    budget: Budget,
    record: bool,
    objective: Classification | None = None,
    predicted: Sequence[str] = SPLITS,
) -> list[Trained]:
    """Train seeds: side by side where steps are recorded, fewer at a time if memory runs out; else one by one."""
    pending = [seeds] if record else [[seed] for seed in seeds]
    trained: list[Trained] = []
    while pending:
        group = pending.pop(0)
        try:
            trained += train_together(build, rows, training, group, budget, record, objective, predicted)
            continue
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
        if len(group) == 1:
            raise PlumblineError(
                "One seed alone does not fit into the device's memory; lower `batch_size` in the model's training, or "
                "set `compute.token_budget`."
            )
        torch.cuda.empty_cache()
        half = len(group) // 2
        pending = [group[:half], group[half:], *pending]
        budget.note(f"out of memory: {len(group)} seeds at once are too many, going on with {half}")
    return trained


def expecting(model: nn.Module, classes: int) -> nn.Module:
    """A model whose first output, of training or of measuring its memory, is refused if it lacks logits of classes."""

    def check(model: nn.Module, given: Any, output: Any) -> None:
        first.remove()
        shape = tuple(getattr(getattr(output, "logits", None), "shape", ()))
        # What is no output at all is refused where it is read.
        if shape and (len(shape) != 2 or shape[1] != classes):
            raise PlumblineError(
                f"The model '{type(model).__name__}' gives logits of shape {list(shape)}, and the dataset has "
                f"{classes} classes; its `forward` must return Output(logits) with one logit for each class, "
                f"[instances, {classes}]" + (", also where there are two." if classes == 2 else ".")
            )

    first = model.register_forward_hook(check)
    return model


def train_block(
    pointer: str,
    options: Mapping[str, Any],
    vectors: Mapping[str, torch.Tensor],
    trainable: bool,
    splits: Mapping[str, Instances],
    classes: int,
    training: Training,
    seeds: list[int],
    budget: Budget | int,
    device: torch.device | str = "cpu",
    objective: Classification | None = None,
    columns: Mapping[str, Mapping[str, Column]] | None = None,
    variants: Mapping[int, Mapping[str, Instances]] | None = None,
    predicted: Sequence[str] = SPLITS,
) -> tuple[dict[str, torch.Tensor], dict[str, list[Any]], dict[str, list[Any]]]:
    """Train every seed. Returns the weights, named ``seed/parameter``, and the columns of history and predictions.

    Where the recipe keeps epochs beside the chosen one, their weights are named ``checkpoints/seed/epoch/parameter``.

    `vectors` holds the word vectors as `embedding` and, where instances have a second text, those of it as `pair`.
    `columns` holds, split by split, what the objective reads beside the instances. `variants` holds the splits of each
    seed where seeds learn different texts. `predicted` are the splits whose predictions are told.
    """
    weights: dict[str, torch.Tensor] = {}
    history: dict[str, list[Any]] = {key: [] for key in ("seed", "epoch", "split", "metric", "value", "seconds")}
    predictions: dict[str, list[Any]] = {key: [] for key in ("seed", "split", "instance", "label", "probabilities")}
    rows: SeedRows
    if variants is None:
        rows = split_rows(splits, classes, training, device, columns)
    else:
        rows = cache(lambda seed: split_rows(variants[seed], classes, training, device))
    record = torch.device(device).type == "cuda"
    budget = Budget.of(budget)

    def blueprint() -> nn.Module:
        model = build_model(pointer, options, vectors.get("embedding"), classes, vectors.get("pair"), trainable)
        return expecting(model, classes)

    block = train_seeds(blueprint, rows, training, seeds, budget, record, objective, predicted)
    for seed, trained in zip(seeds, block, strict=True):
        weights |= {f"{seed}/{name}": tensor for name, tensor in trained.state.items()}
        for epoch, state in trained.checkpoints.items():
            weights |= {checkpoint_prefix(seed, epoch) + name: tensor for name, tensor in state.items()}
        chosen = {"seed": seed, "epoch": trained.chosen_epoch, "split": training.select_on, "metric": "chosen_epoch"}
        seconds = trained.history[-1]["seconds"] if trained.history else 0.0
        for row in [*trained.history, {**chosen, "value": trained.chosen_epoch, "seconds": seconds}]:
            for key, value in row.items():
                history[key].append(value)
        for name in predicted:
            instances = splits[name]
            predictions["seed"] += [seed] * len(instances)
            predictions["split"] += instances.split.tolist()
            predictions["instance"] += instances.instance.tolist()
            predictions["label"] += instances.label.tolist()
            predictions["probabilities"] += list(trained.probabilities[name])
    return weights, history, predictions
