"""A block: the models of several seeds, stored together. Loading them does not import the trainer."""

from collections.abc import Iterator, Mapping, Sequence
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
    """A new model. Its class takes the word vectors [V, d], or None if it has its own, the number of classes, the
    vectors of second texts if any, and its options."""
    model = load(pointer)(embedding, classes, *([] if pair is None else [pair]), **options)
    if not isinstance(model, torch.nn.Module):
        raise PlumblineError(f"The model '{type(model).__name__}' must be a subclass of torch.nn.Module.")
    for name in ("embedding", *([] if pair is None else ["pair_embedding"])):
        # Stored weights are looked up by these names.
        if not hasattr(getattr(model, name, None), "weight"):
            raise PlumblineError(f"The model '{type(model).__name__}' must store its word vectors as `self.{name}`.")
        getattr(model, name).weight.requires_grad_(trainable)
    return model


def with_answers(options: Mapping[str, Any], class_names: Sequence[str]) -> Mapping[str, Any]:
    """The options of a model; if it answers with words and the study names none, these are the names of the classes."""
    return {**options, "answers": [f" {name}" for name in class_names]} if options.get("answers") == [] else options


def trained_models(
    weights: str | Path,
    pointer: str,
    options: Mapping[str, Any],
    classes: int,
    seeds: list[int],
    budget: Budget | int,
    device: torch.device | str = "cpu",
    epoch: int | None = None,
) -> Iterator[Evaluator]:
    """Load the models of a block one at a time, at their selected epoch or at a checkpoint, with one budget for all."""
    budget = Budget.of(budget)
    for seed in seeds:
        state = read_tensors(weights, f"{seed}/" if epoch is None else checkpoint_prefix(seed, epoch))
        model = build_model(pointer, options, state["embedding.weight"], classes, state.get("pair_embedding.weight"))
        model.load_state_dict(state)
        yield Evaluator(model.requires_grad_(False), seed, budget, device)


def checkpoint_prefix(seed: int, epoch: int) -> str:
    """The prefix of the tensor names of a checkpoint, that is an epoch stored in addition to the selected one."""
    return f"checkpoints/{seed}/{epoch}/"


def list_checkpoints(weights: str | Path) -> list[tuple[int, int]]:
    """The seed and epoch of each checkpoint in a weights file, sorted; reads no tensor."""
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
    """Load the checkpoints of a block, each with its epoch, seed by seed."""
    budget = Budget.of(budget)
    stored = list_checkpoints(weights)
    for seed in seeds:
        for epoch in (epoch for owner, epoch in stored if owner == seed):
            for evaluator in trained_models(weights, pointer, options, classes, [seed], budget, device, epoch):
                yield epoch, evaluator


def predicted_classes(probabilities: np.ndarray) -> np.ndarray:
    """The most probable class of each row [N, C]."""
    return probabilities.argmax(axis=1).astype(np.int32)
