"""The token budget: chosen from the memory there is, halved when it runs out."""

import weakref

import numpy as np
import pytest
import torch

from plumbline.conformance import example_instances, example_model
from plumbline.errors import PlumblineError
from plumbline.models import budget as budgets
from plumbline.models.batch import collate
from plumbline.models.budget import Budget, bytes_per_token
from plumbline.models.classifier import Output
from plumbline.models.evaluator import Evaluator
from plumbline.registry import Registry

MODEL = Registry().get("model", "bilstm-tanh")
INSTANCES = example_instances(60)


def example(length):
    return collate([np.full(length, 7)] * budgets.ROWS, None)


class Small(torch.nn.Module):
    """A model on a device that holds at most `room` tokens."""

    def __init__(self, room, error=None):
        super().__init__()
        self.inner = example_model(MODEL)
        self.embedding = self.inner.embedding
        self.room, self.error, self.passes = room, error or torch.OutOfMemoryError("out of memory"), []

    def forward(self, batch):
        self.passes.append(batch.ids.numel())
        if batch.ids.numel() > self.room:
            raise self.error
        return self.inner(batch)


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)
def test_out_of_memory_halves_the_budget_and_goes_on(error):
    expected = Evaluator(example_model(MODEL), 0, 10_000).probabilities(INSTANCES)
    budget = Budget(400)
    model = Small(120, error)
    with pytest.warns(UserWarning, match="token budget halved to 100"):
        found = Evaluator(model, 0, budget).probabilities(INSTANCES)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert budget.tokens == 100
    assert budget.events == [f"out of memory: token budget halved to {n}" for n in (200, 100)]
    assert sum(size for size in model.passes if size <= 120) < 2 * INSTANCES.lengths.sum(), "finished rows do not rerun"


def test_other_errors_are_not_taken_for_lack_of_memory():
    with pytest.raises(RuntimeError, match="something else"):
        Evaluator(Small(1, RuntimeError("something else")), 0, 400).probabilities(INSTANCES)


def test_a_row_that_never_fits_is_one_sentence():
    with (
        pytest.warns(UserWarning),
        pytest.raises(
            PlumblineError,
            match="A text of 15 tokens does not fit into the memory of device 'cpu', even in a batch of its own",
        ),
    ):
        Evaluator(Small(3), 0, 400).probabilities(INSTANCES)


def test_a_budget_too_small_for_one_row_is_one_sentence():
    with pytest.raises(
        PlumblineError, match=r"A text of 15 tokens does not fit into `compute\.token_budget`, which is 9"
    ):
        Evaluator(example_model(MODEL), 0, 9).probabilities(INSTANCES)


def test_the_budget_is_chosen_from_free_memory(monkeypatch):
    model = example_model(MODEL)
    cost = bytes_per_token(model, example(15))
    for free, expected in [(10**12, budgets.USEFUL_TOKENS["cpu"]), (cost * 6000, 1000), (10, 15)]:
        monkeypatch.setattr(budgets, "free_bytes", lambda device, memory, sharing, free=free: free)
        assert Budget().settle(model, 15, lambda: example(15)) == pytest.approx(expected, abs=1)


def test_free_memory_is_what_the_job_may_take():
    assert budgets.free_bytes("cpu", 10) == 10 * 2**20
    assert budgets.free_bytes("cpu", None) > 10 * 2**20


def test_a_job_that_comes_last_to_a_shared_gpu_has_as_much_as_the_others(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (20_000, 160_000))
    assert budgets.free_bytes("cuda", None, sharing=16) == 10_000, "others took 14 parts of 16, and one is its own"
    assert budgets.free_bytes("cuda", None, sharing=4) == 20_000, "no more than is free"
    assert budgets.free_bytes("cuda", None) == 20_000


def test_bytes_per_token_count_what_a_pass_allocates():
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(10, 100)

        def forward(self, batch):
            hidden = self.embedding(batch.ids)  # The ids are kept: 8 bytes a token.
            once = hidden.tanh()  # 400 bytes a token,
            twice = once.transpose(0, 1).exp()  # as many again; the view costs nothing.
            return Output(twice.sum(0))  # 400 bytes a row of ten tokens.

    model = Two().requires_grad_(False)
    assert bytes_per_token(model, example(10)) == pytest.approx(8 + 800 + 40)
    assert not model.embedding.weight.requires_grad


def test_a_chosen_budget_grows_with_longer_rows_only_if_it_must(monkeypatch):
    model = example_model(MODEL)
    monkeypatch.setattr(budgets, "free_bytes", lambda device, memory, sharing: 10)
    budget = Budget()
    chosen = [budget.settle(model, longest, lambda longest=longest: example(longest)) for longest in (15, 8, 20)]
    assert chosen == [15, 15, 20]


def test_nothing_is_tried_where_the_budget_is_known():
    def never():
        raise AssertionError("an example was made")

    assert Budget(100).settle(None, 15, never) == 100
    settled = Budget()
    settled.tokens = 50
    assert settled.settle(None, 15, never) == 50


def test_a_tried_pass_is_forgotten():
    """What it left would tie the model's gradients to the stream it ran on, which breaks recordings."""

    class Watched(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(10, 4)

        def forward(self, batch):
            once = self.embedding(batch.ids).tanh()  # A step that keeps its own output.
            self.seen = weakref.ref(once)
            return Output(once.sum(1))

    model = Watched()
    bytes_per_token(model, example(15))
    assert model.seen() is None
