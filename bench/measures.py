"""Measures over many instances together against one instance, or one position, at a time."""

from collections.abc import Iterator

import numpy as np
import torch
from timing import Row, compare

from plumbline.attribution.gradient import gradient
from plumbline.attribution.leave_one_out import leave_one_out
from plumbline.data.instances import Instances
from plumbline.data.vocabulary import EOS, SOS, SPECIALS
from plumbline.models.block import build
from plumbline.models.devices import choose_device
from plumbline.models.evaluator import Evaluator
from plumbline.registry import Registry

WORDS, DIMENSIONS, BUDGET = 13_700, 300, 16_384


def texts(count: int, mean: int) -> Instances:
    """Random texts whose lengths vary as sentences' lengths do."""
    random = np.random.default_rng(0)
    words = [random.integers(len(SPECIALS), WORDS, size=max(3, random.poisson(mean))) for _ in range(count)]
    ids = [np.concatenate([[SOS], text, [EOS]]).astype(np.int32) for text in words]
    free = [np.concatenate([[False], np.ones(len(text), dtype=bool), [False]]) for text in words]
    return Instances(np.array(["test"] * count), np.arange(count), np.zeros(count, dtype=np.int32), ids, free)


def evaluator(name: str) -> Evaluator:
    """A model of the study's size with random weights."""
    torch.manual_seed(0)
    declaration = Registry().get("model", name)
    options = {key: option.default for key, option in declaration.options.items()}
    model = build(declaration.pointer, options, torch.randn(WORDS, DIMENSIONS), 2).requires_grad_(False)
    return Evaluator(model, 0, BUDGET, choose_device())


def one_pass_per_position(asked: Evaluator, instances: Instances) -> list[np.ndarray]:
    """Leave-one-out as it is written down: delete a word, run the model, repeat."""
    scores = []
    for ids, free in zip(instances.ids, instances.maskable, strict=True):
        before = asked.probabilities([ids], [free])[0]
        after = [asked.probabilities([np.delete(ids, t)], [np.delete(free, t)])[0] for t in np.flatnonzero(free)]
        scores.append(np.abs(np.array(after) - before).sum(1))
    return scores


def rows() -> Iterator[Row]:
    """Leave-one-out and gradients, for the encoders of Jain & Wallace at SST's sizes."""
    instances = texts(100, 19)
    for name in ("bilstm-tanh", "cnn-tanh", "average-tanh"):
        asked = evaluator(name)
        slow, fast = one_pass_per_position(asked, instances), leave_one_out(asked, instances).scores
        assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(slow, fast, strict=True))
        yield compare(
            f"leave-one-out, {name}, 100 texts of 19 words",
            lambda asked=asked: one_pass_per_position(asked, instances),
            lambda asked=asked: leave_one_out(asked, instances),
        )
        yield compare(
            f"gradient, {name}, 100 texts of 19 words",
            lambda asked=asked: [gradient(asked, instances.take([i])) for i in range(len(instances))],
            lambda asked=asked: gradient(asked, instances),
        )
