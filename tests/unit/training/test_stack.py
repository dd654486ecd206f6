"""The steps of several seeds as one do what the seeds' own steps do.

The kernels of a BiLSTM are compiled for the CPU; test_gpu.py has the rest.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from plumbline.config.recipes import Training
from plumbline.conformance import example_instances
from plumbline.models.block import build_model
from plumbline.models.budget import Budget
from plumbline.models.classifier import AttentionClassifier
from plumbline.models.encoders import BiLSTM
from plumbline.models.objectives import AtteFa, Classification
from plumbline.registry import Registry
from plumbline.training.learner import Learner
from plumbline.training.stack import Stack, can_stack
from plumbline.training.trainer import LOSS, SeedSetup, split_rows, train_together
from tests.unit.models.cpu_kernels import needs_compiler, on_the_cpu

REGISTRY = Registry()
VECTORS = torch.randn(40, 12, generator=torch.Generator().manual_seed(0))
SEEDS = [3, 4, 5]
TRAINING = Training(
    epochs=2, batch_size=8, batching="shuffle", class_weights="none", reduction="mean", select_by="loss",
    first_eligible_epoch=1, weight_decay=1e-3, learning_rate=0.005, precision="float32",
)  # fmt: skip


def make(name, seed, paired, vectors=VECTORS, trainable=True):
    torch.manual_seed(seed)
    declared = REGISTRY.get("model", name)
    options = {option: value.default for option, value in declared.options.items()} | {"hidden": 32}
    second = vectors.clone() if paired else None
    return build_model(declared.pointer, options, vectors, 5 if paired else 2, second, trainable)


def rows_of(seed, paired, training=TRAINING):
    """Texts, some of whose words are other words for each seed; the last batch is smaller."""
    random = np.random.default_rng(seed)

    def own(instances):
        return replace(instances, ids=[np.where(random.random(len(i)) < 0.3, i % 7 + 3, i) for i in instances.ids])

    splits = {split: example_instances(n, seed=n, paired=paired) for split, n in (("train", 20), ("dev", 6))}
    return split_rows({split: own(instances) for split, instances in splits.items()}, 5, training, "cpu")


@pytest.fixture
def kernels_of_the_cpu(tmp_path, monkeypatch):
    run = on_the_cpu(tmp_path, 32, 4, 2)
    own = SimpleNamespace(run=run)
    monkeypatch.setattr(BiLSTM, "_kernels", lambda self, _: own if self.training else None)


def train(learners, trainees):
    for epoch in range(1, TRAINING.epochs + 1):
        counts = [one.begin_epoch() for one in trainees]
        for number in range(len(counts[0])):
            for one in trainees:
                one.step(number)
        for one in trainees:
            if isinstance(one, Stack):
                one.end_epoch()
        for learner in learners:
            learner.end_epoch(epoch)
            learner.read_epoch(epoch)
    return [learner.finish() for learner in learners]


@needs_compiler
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("name", ["bilstm-softmax", "average-tanh"])
@pytest.mark.parametrize(
    "changes", [{}, {"reduction": "sum", "schedule": "linear", "warmup": 0.5, "optimiser": "adamw"}]
)
def test_a_stack_does_what_its_learners_do_alone(kernels_of_the_cpu, name, paired, changes):
    training = TRAINING.model_copy(update=changes)
    rows = {seed: rows_of(seed, paired, training) for seed in SEEDS}

    def learners(**options):
        return [Learner(make(name, seed, paired), seed, rows[seed], training, Budget(400), **options) for seed in SEEDS]

    alone, together = learners(), learners(stack=True)
    stack = Stack(together)
    assert train(alone, alone) == train(together, [stack])
    for one, other in zip(alone, together, strict=True):
        for mine, its in zip(one.history, other.history, strict=True):
            assert mine == pytest.approx(its, abs=1e-5, nan_ok=True)
        # AMSGrad divides by the gradient's own size, so that a gradient of mere rounding moves a parameter too.
        for mine, its in zip(one.model.parameters(), other.model.parameters(), strict=True):
            torch.testing.assert_close(mine, its, atol=1e-4, rtol=0)
    assert len({learner.history[-1]["train", "loss"] for learner in together}) == len(SEEDS)


def test_seeds_stop_on_their_own():
    """One seed diverges at once, and the others stop when dev no longer improves."""
    training = TRAINING.model_copy(update={"epochs": 8, "patience": 1, "learning_rate": 0.1, "checkpoint_gain": 0.0})
    rows = {seed: rows_of(seed, False, training) for seed in SEEDS}
    found = []
    for stacked in (False, True):
        models = [make("average-tanh", seed, False) for seed in SEEDS]
        models[1].head.linear.weight.data.fill_(torch.nan)
        learners = [
            Learner(model, seed, rows[seed], training, Budget(400), stack=stacked)
            for model, seed in zip(models, SEEDS, strict=True)
        ]
        stack, active = Stack(learners) if stacked else None, learners
        for epoch in range(1, training.epochs + 1):
            counts = [stack.begin_epoch()] if stack else [learner.begin_epoch() for learner in active]
            for number in range(len(counts[0])):
                for trainee in [stack] if stack else active:
                    trainee.step(number)
            if stack:
                stack.end_epoch()
            for learner in active:
                learner.end_epoch(epoch)
                learner.read_epoch(epoch)
            active = [learner for learner in active if not learner.done and np.isfinite(learner.history[-1][LOSS])]
            if not active:
                break
        found.append([(learner.finish(), len(learner.history), list(learner.checkpoints)) for learner in learners])
        states = [model.state_dict() for model in models]
        found[-1].append([{name: tensor.clone() for name, tensor in state.items()} for state in states])
    (*alone, mine), (*together, its) = found
    assert alone == together and [epochs for _, epochs, _ in alone][1] == 1 < len(SEEDS)
    assert min(epochs for _, epochs, _ in (alone[0], alone[2])) < training.epochs
    for seed in (0, 2):
        for name, tensor in mine[seed].items():
            torch.testing.assert_close(tensor, its[seed][name], atol=1e-4, rtol=0)


def test_vectors_that_are_not_trained_stay():
    rows = {seed: rows_of(seed, False) for seed in SEEDS}
    models = [make("average-tanh", seed, False, trainable=False) for seed in SEEDS]
    learners = [
        Learner(model, seed, rows[seed], TRAINING, Budget(400), stack=True)
        for model, seed in zip(models, SEEDS, strict=True)
    ]
    train(learners, [Stack(learners)])
    assert all(torch.equal(model.embedding.weight, VECTORS) for model in models)


def test_what_is_stacked():
    rows = rows_of(0, False)["train"]
    models = [make("average-tanh", seed, False) for seed in SEEDS]
    assert can_stack(models, rows, TRAINING, None) and can_stack(models, rows, TRAINING, Classification())
    assert not can_stack(models[:1], rows, TRAINING, None)
    assert not can_stack(models, rows, TRAINING, AtteFa())
    for changes in (
        {"batching": "length-noise"},
        {"masking": "uniform"},
        {"schedule": "plateau"},
        {"clip_norm": 1.0},
        {"epochs": 0},
        {"precision": "bfloat16"},
    ):
        assert not can_stack(models, rows, TRAINING.model_copy(update=changes), None)
    assert not can_stack([make("cnn-tanh", seed, False) for seed in SEEDS], rows, TRAINING, None)

    class Own(AttentionClassifier):
        pass

    torch.manual_seed(0)
    assert not can_stack([Own(VECTORS, 2, encoder="average", hidden=32) for _ in SEEDS], rows, TRAINING, None)
    large = [make("average-tanh", seed, False, torch.zeros(10_000, 101)) for seed in SEEDS]
    assert not can_stack(large, rows, TRAINING, None)
    other = make("average-tanh", 1, False, VECTORS + 1, trainable=False)
    assert not can_stack([make("average-tanh", 0, False, trainable=False), other], rows, TRAINING, None)
    assert not can_stack([torch.nn.Linear(2, 2)] * 2, rows, TRAINING, None)


def test_kernels_are_there_before_a_step_is_traced(monkeypatch):
    """Those of the arithmetic of training, for all tokens of a step, second texts too."""
    seen = []

    def stackable(self, device, tokens):
        seen.append((torch.backends.cuda.matmul.allow_tf32, tokens))
        return True

    monkeypatch.setattr(AttentionClassifier, "stackable", stackable)
    rows = rows_of(0, True)["train"]
    models = [make("average-tanh", seed, True) for seed in SEEDS]
    assert can_stack(models, rows, TRAINING.model_copy(update={"precision": "tf32"}), None)
    assert can_stack(models, rows, TRAINING, None)
    longest = max(rows.text.lengths.max(), rows.pair.lengths.max())
    assert dict(seen) == dict.fromkeys((True, False), 3 * TRAINING.batch_size * longest)


def test_kernels_are_not_for_more_values_than_they_count(monkeypatch):
    monkeypatch.setattr("plumbline.models.encoders.kernels", lambda units, rounded: "found")
    encoder, cuda = BiLSTM(5, 32), torch.device("cuda")
    assert encoder.stackable(cuda, 2**23 - 1) and not encoder.stackable(cuda, 2**23)
    assert not encoder.stackable(torch.device("cpu"), 1)


def test_seeds_of_a_block_on_a_cpu_keep_steps_of_their_own(monkeypatch):
    monkeypatch.setattr("plumbline.training.trainer.Stack", None)
    rows = rows_of(0, False)
    setup = SeedSetup(lambda: make("average-tanh", torch.initial_seed(), False), rows, TRAINING, predicted=["dev"])
    assert len(train_together(setup, SEEDS, Budget(400))) == len(SEEDS)
