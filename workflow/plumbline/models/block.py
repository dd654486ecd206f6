"""A block: the models of several seeds, trained, stored and loaded together."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from plumbline.config.recipes import Training
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.models.trainer import train_seed
from plumbline.registry import load
from plumbline.store import read_tensors


def build(pointer: str, options: Mapping[str, Any], embedding: torch.Tensor, classes: int, trainable: bool = True) -> nn.Module:
    """A fresh model. Its class takes the word vectors [V, d], the number of classes and its options."""
    model: nn.Module = load(pointer)(embedding, classes, **options)
    model.embedding.weight.requires_grad_(trainable)  # type: ignore[union-attr, operator]
    return model


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
        for row in [*trained.history, {**chosen, "value": trained.chosen_epoch, "seconds": trained.history[-1]["seconds"]}]:
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


def trained_models(
    weights: str | Path,
    pointer: str,
    options: Mapping[str, Any],
    classes: int,
    seeds: list[int],
    token_budget: int,
    device: torch.device | str = "cpu",
) -> Iterator[Evaluator]:
    """The models of a block, one at a time, ready to be asked."""
    for seed in seeds:
        state = read_tensors(weights, prefix=f"{seed}/")
        model = build(pointer, options, state["embedding.weight"], classes)
        model.load_state_dict(state)
        yield Evaluator(model.requires_grad_(False), seed, token_budget, device)


def predicted_classes(probabilities: np.ndarray) -> np.ndarray:
    """The most probable class of each row [N, C]."""
    return probabilities.argmax(axis=1).astype(np.int32)
