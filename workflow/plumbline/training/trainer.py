"""Training of a block of seeds on one dataset.

Each seed has its own random numbers. A block is reproducible to the byte on one machine, unless memory runs out.
"""

import gc
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
from plumbline.data.vocabulary import MASK
from plumbline.errors import PlumblineError
from plumbline.models.block import build_model, checkpoint_prefix
from plumbline.models.budget import Budget, out_of_memory
from plumbline.models.objectives import Classification
from plumbline.models.rows import Column, DeviceRows
from plumbline.runtime.progress import Progress
from plumbline.training.learner import Learner, MetricKey, class_weights, evaluate_rows
from plumbline.training.stack import Stack, can_stack

LOSS = MetricKey("train", "loss")
# Evaluation in passes of so few tokens is not what memory lacks for.
FEW_TOKENS = 2048
# Rows by split, shared by all seeds or given by a function of the seed.
SeedRows = Mapping[str, DeviceRows] | Callable[[int], Mapping[str, DeviceRows]]


@dataclass(frozen=True)
class BlockSpec:
    """The model, data and recipe of a block.

    `vectors` holds the word vectors as `embedding` and, for pairs, those of second texts as `pair`; `trainable` lets
    training change them. `columns` holds, by split, the objective's further inputs. `masked_instances` holds a seed's
    splits if seeds learn different texts. `predicted` are the splits whose predictions are returned. `mask_id` is the
    mask token of masked training.
    """

    pointer: str
    options: Mapping[str, Any]
    vectors: Mapping[str, torch.Tensor]
    splits: Mapping[str, Instances]
    classes: int
    training: Training
    trainable: bool = True
    objective: Classification | None = None
    columns: Mapping[str, Mapping[str, Column]] | None = None
    masked_instances: Mapping[int, Mapping[str, Instances]] | None = None
    predicted: Sequence[str] = SPLITS
    mask_id: int = MASK


@dataclass(frozen=True)
class SeedSetup:
    """What all seeds of a block share: `build` makes a new model; `record` records the steps as CUDA graphs."""

    build: Callable[[], nn.Module]
    rows: SeedRows
    training: Training
    record: bool = False
    objective: Classification | None = None
    predicted: Sequence[str] = SPLITS
    mask_id: int = MASK


@dataclass(frozen=True)
class Trained:
    """One seed's parameters at its selected epoch, its history, and the parameters of its checkpoint epochs."""

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
    """The splits on the device, every row with its class weight and the values of its split's `columns`."""
    weight = class_weights(splits["train"].label, classes, training.class_weights)
    return {
        name: DeviceRows(split, device, {"weight": weight[split.label], **(columns or {}).get(name, {})})
        for name, split in splits.items()
    }


def train_together(setup: SeedSetup, seeds: list[int], budget: Budget) -> list[Trained]:
    """Train seeds in lockstep, each on its rows; recorded steps run concurrently on a GPU."""
    training = setup.training
    rows = {seed: setup.rows(seed) if callable(setup.rows) else setup.rows for seed in seeds}
    models = []
    for seed in seeds:
        torch.manual_seed(seed)
        models.append(setup.build())
    train = rows[seeds[0]]["train"]
    stacked = setup.record and can_stack(models, train, training, setup.objective)
    stream = torch.cuda.Stream(train.device) if stacked else None
    options = setup.objective, setup.record and not stacked, setup.mask_id, stacked, stream
    learners = [
        Learner(model, seed, rows[seed], training, budget, *options) for model, seed in zip(models, seeds, strict=True)
    ]
    stack = Stack(learners, stream) if stacked else None
    size = len(train)
    history: dict[int, list[dict[str, Any]]] = {seed: [] for seed in seeds}
    name = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    progress = Progress(len(seeds) * training.epochs * size, name, "row")
    started = time.perf_counter()
    active = learners
    for epoch in range(1, training.epochs + 1):
        counts = [stack.begin_epoch()] * len(active) if stack else [learner.begin_epoch() for learner in active]
        progress.describe(f"{name}, epoch {epoch}/{training.epochs}", len(counts[0]))
        for number, step_counts in enumerate(zip(*counts, strict=True)):
            for trainee in [stack] if stack else active:
                trainee.step(number)
            progress.update(sum(step_counts))
        if stack:
            stack.end_epoch()
        for learner in active:
            learner.end_epoch(epoch)
            learner.draw_order()
        for learner in active:
            metrics = learner.read_epoch(epoch)
            history[learner.seed] += [
                {
                    "seed": learner.seed, "epoch": epoch, "split": split, "metric": metric, "value": value,
                    "seconds": time.perf_counter() - started,
                }
                for (split, metric), value in metrics.items()
            ]  # fmt: skip
            shown = dict.fromkeys([LOSS, *learner.selection_keys.values()])
            progress.note(", ".join(f"{' '.join(key)} {metrics[key]:.3f}" for key in shown))
        unfinished = [learner for learner in active if not learner.done and np.isfinite(learner.history[-1][LOSS])]
        progress.shorten((len(active) - len(unfinished)) * (training.epochs - epoch) * size)
        active = unfinished
        if not active:
            break
    progress.close()
    # Texts of different seeds differ in words, not in length.
    chunks = {split: rows[seeds[0]][split].plan_chunks(learners[0].model, budget) for split in setup.predicted}
    trained = []
    if stack:
        stack.finish()
    for learner in learners:
        chosen = learner.finish()
        state = {name: tensor.detach().cpu() for name, tensor in learner.model.state_dict().items()}
        probabilities = {}
        for split, plan in chunks.items():
            predicted, _ = evaluate_rows(learner.model, learner.objective, rows[learner.seed][split], plan)
            probabilities[split] = predicted.cpu().numpy()
        trained.append(Trained(state, history[learner.seed], chosen, probabilities, learner.checkpoints))
    return trained


def train_seeds(setup: SeedSetup, seeds: list[int], budget: Budget) -> list[Trained]:
    """Train seeds: concurrently if steps are recorded, otherwise one by one. If memory runs out, fewer at a time, and a
    single seed with smaller passes of evaluation."""
    pending = [seeds] if setup.record else [[seed] for seed in seeds]
    trained: list[Trained] = []
    while pending:
        group = pending.pop(0)
        try:
            trained += train_together(setup, group, budget)
            continue
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
        # A recorded step and its learner refer to each other, so their memory is free only after a collection.
        gc.collect()
        torch.cuda.empty_cache()
        if len(group) == 1:
            if budget.tokens <= FEW_TOKENS:
                raise PlumblineError(
                    "One seed alone does not fit into the device's memory; lower `batch_size` in the model's training, "
                    "or let fewer jobs share a GPU (`compute.slots_per_gpu`)."
                )
            budget.halve(FEW_TOKENS, "cpu")
            pending = [group, *pending]
            continue
        half = len(group) // 2
        pending = [group[:half], group[half:], *pending]
        budget.note(f"out of memory: {len(group)} seeds at once do not fit, continuing with {half}")
    return trained


def with_logits_check(model: nn.Module, classes: int) -> nn.Module:
    """The model, with a hook that checks at the first forward pass that it outputs one logit per class."""

    def check(model: nn.Module, inputs: Any, output: Any) -> None:
        hook.remove()
        shape = tuple(getattr(getattr(output, "logits", None), "shape", ()))
        # An output without logits is refused by `output_of`.
        if shape and (len(shape) != 2 or shape[1] != classes):
            raise PlumblineError(
                f"The model '{type(model).__name__}' gives logits of shape {list(shape)}, but the dataset has "
                f"{classes} classes; its `forward` must return Output(logits) with one logit per class, [instances, "
                f"{classes}]" + (", also for two classes." if classes == 2 else ".")
            )

    hook = model.register_forward_hook(check)
    return model


def train_block(
    spec: BlockSpec, seeds: list[int], budget: Budget | int | None, device: torch.device | str = "cpu"
) -> tuple[dict[str, torch.Tensor], dict[str, list[Any]], dict[str, list[Any]]]:
    """Train every seed. Returns the weights, named ``seed/parameter``, and the columns of history and predictions.

    The weights of checkpoint epochs are named ``checkpoints/seed/epoch/parameter``.
    """
    weights: dict[str, torch.Tensor] = {}
    history: dict[str, list[Any]] = {key: [] for key in ("seed", "epoch", "split", "metric", "value", "seconds")}
    columns = ("seed", "split", "instance", "label", "answers", "probabilities")
    predictions: dict[str, list[Any]] = {column: [] for column in columns}
    training, classes, masked_instances = spec.training, spec.classes, spec.masked_instances
    rows: SeedRows
    if masked_instances is None:
        rows = split_rows(spec.splits, classes, training, device, spec.columns)
    else:
        rows = cache(lambda seed: split_rows(masked_instances[seed], classes, training, device))

    def build() -> nn.Module:
        embedding, pair = (spec.vectors.get(name) for name in ("embedding", "pair"))
        return with_logits_check(
            build_model(spec.pointer, spec.options, embedding, classes, pair, spec.trainable), classes
        )

    record = torch.device(device).type == "cuda"
    setup = SeedSetup(build, rows, training, record, spec.objective, spec.predicted, spec.mask_id)
    for seed, trained in zip(seeds, train_seeds(setup, seeds, Budget.of(budget)), strict=True):
        weights |= {f"{seed}/{name}": tensor for name, tensor in trained.state.items()}
        for epoch, state in trained.checkpoints.items():
            weights |= {checkpoint_prefix(seed, epoch) + name: tensor for name, tensor in state.items()}
        chosen = {"seed": seed, "epoch": trained.chosen_epoch, "split": training.select_on, "metric": "chosen_epoch"}
        seconds = trained.history[-1]["seconds"] if trained.history else 0.0
        for row in [*trained.history, {**chosen, "value": trained.chosen_epoch, "seconds": seconds}]:
            for key, value in row.items():
                history[key].append(value)
        for name in spec.predicted:
            instances = spec.splits[name]
            predictions["seed"] += [seed] * len(instances)
            predictions["split"] += instances.split.tolist()
            predictions["instance"] += instances.instance.tolist()
            predictions["label"] += instances.label.tolist()
            predictions["answers"] += [None] * len(instances) if instances.answers is None else instances.answers
            predictions["probabilities"] += list(trained.probabilities[name])
    return weights, history, predictions
