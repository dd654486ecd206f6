"""A block: the models of several seeds, stored together. Loading them does not import the trainer."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from plumbline.errors import PlumblineError
from plumbline.models.budget import Budget
from plumbline.models.evaluator import Evaluator
from plumbline.registry import load
from plumbline.store import read_tensors, tensor_names


def build_model(
    pointer: str,
    options: Mapping[str, Any],
    embedding: torch.Tensor | None,
    classes: int,
    pair: torch.Tensor | None = None,
    trainable: bool = True,
) -> Any:
    """A fresh model. Its class takes the word vectors [V, d], or None if it brings its own, the number of classes, the
    vectors of second texts where there are any, and its options."""
    model = load(pointer)(embedding, classes, *([] if pair is None else [pair]), **options)
    if not isinstance(model, torch.nn.Module):
        raise PlumblineError(f"The model '{type(model).__name__}' must be a subclass of torch.nn.Module.")
    for name in ("embedding", *([] if pair is None else ["pair_embedding"])):
        # Trained models are found again by these names.
        if not hasattr(getattr(model, name, None), "weight"):
            raise PlumblineError(f"The model '{type(model).__name__}' must keep its word vectors as `self.{name}`.")
        getattr(model, name).weight.requires_grad_(trainable)
    return model


def trained_models(
    weights: str | Path,
    pointer: str,
    options: Mapping[str, Any],
    classes: int,
    seeds: list[int],
    budget: Budget | int,
    device: torch.device | str = "cpu",
) -> Iterator[Evaluator]:
    """The models of a block, one at a time, ready to be asked, with one budget for all."""
    budget = Budget.of(budget)
    for seed in seeds:
        yield _stored(weights, f"{seed}/", pointer, options, classes, seed, budget, device)


def checkpoint_prefix(seed: int, epoch: int) -> str:
    """What the names of the weights of an epoch kept beside the chosen one begin with."""
    return f"checkpoints/{seed}/{epoch}/"


def checkpoints(weights: str | Path) -> list[tuple[int, int]]:
    """Each seed and epoch that a file of weights keeps beside the chosen one, in order; no weight is read."""
    parts = [name.split("/") for name in tensor_names(weights, prefix="checkpoints/")]
    return sorted({(int(seed), int(epoch)) for seed, epoch, *_ in parts})


def checkpoint_models(
    weights: str | Path,
    pointer: str,
    options: Mapping[str, Any],
    classes: int,
    seeds: list[int],
    budget: Budget | int,
    device: torch.device | str = "cpu",
) -> Iterator[tuple[int, Evaluator]]:
    """The models of a block at the epochs that are kept beside the chosen one, each with its epoch, seed by seed."""
    budget = Budget.of(budget)
    kept = checkpoints(weights)
    for wanted in seeds:
        for seed, epoch in kept:
            if seed == wanted:
                prefix = checkpoint_prefix(seed, epoch)
                yield epoch, _stored(weights, prefix, pointer, options, classes, seed, budget, device)


def _stored(
    weights: str | Path,
    prefix: str,
    pointer: str,
    options: Mapping[str, Any],
    classes: int,
    seed: int,
    budget: Budget,
    device: torch.device | str,
) -> Evaluator:
    state = read_tensors(weights, prefix)
    model = build_model(pointer, options, state["embedding.weight"], classes, state.get("pair_embedding.weight"))
    model.load_state_dict(state)
    return Evaluator(model.requires_grad_(False), seed, budget, device)


def predicted_classes(probabilities: np.ndarray) -> np.ndarray:
    """The most probable class of each row [N, C]."""
    return probabilities.argmax(axis=1).astype(np.int32)
