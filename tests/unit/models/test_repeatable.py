"""Training that repeats to the bit has the gradients of PyTorch's own functions."""

import pytest
import torch
from torch.nn.functional import embedding, scaled_dot_product_attention

from plumbline.models.repeatable import SMALL_TABLE, RepeatableGradients, _Lookup

GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


def lookup_gradient(lookup, indices, rows):
    table = torch.randn(rows, 6, generator=torch.Generator().manual_seed(0)).to(indices.device).requires_grad_()
    weights = torch.arange(indices.numel(), device=indices.device).view(*indices.shape, 1) / 7
    (gradient,) = torch.autograd.grad((lookup(indices, table) ** 2 * weights).sum(), table)
    return gradient


@pytest.mark.parametrize("rows", [1, 5, SMALL_TABLE, SMALL_TABLE + 1])
def test_gradients_of_lookups(rows):
    indices = torch.randint(rows, (3, 40), generator=torch.Generator().manual_seed(1))
    ours, theirs = lookup_gradient(_Lookup.apply, indices, rows), lookup_gradient(embedding, indices, rows)
    assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-4)
    assert ours.shape == (rows, 6) and ours.abs().sum() > 0


def test_attention_is_deterministic_and_nothing_else():
    """The request for determinism ends with attention, forward and backward."""
    states = []

    def note(gradient):
        states.append(torch.are_deterministic_algorithms_enabled())

    query = torch.randn(2, 3, 5, 8, requires_grad=True)
    with RepeatableGradients():
        before = query * 2
        before.register_hook(note)
        output = scaled_dot_product_attention(before, before, before)
        output.register_hook(note)
        assert not torch.are_deterministic_algorithms_enabled()
    (gradient,) = torch.autograd.grad((output**2).sum(), query)
    assert states == [False, False]
    assert not torch.are_deterministic_algorithms_enabled()
    query = query.detach().requires_grad_()
    (plain,) = torch.autograd.grad((scaled_dot_product_attention(*[query * 2] * 3) ** 2).sum(), query)
    assert torch.allclose(gradient, plain, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [pytest.param(rows, marks=GPU) for rows in (1, 2, 500, 50_000)])
def test_lookups_of_long_texts_repeat_on_a_gpu(rows):
    """A batch as long as IMDB's, whose most frequent index occurs in every second place."""
    random = torch.Generator().manual_seed(1)
    indices = torch.randint(rows, (16, 512), generator=random) * torch.randint(2, (16, 512), generator=random)
    with RepeatableGradients():
        gradients = [lookup_gradient(embedding, indices.cuda(), rows) for _ in range(5)]
    assert all(torch.equal(gradients[0], other) for other in gradients[1:])
    assert torch.allclose(gradients[0].cpu(), lookup_gradient(embedding, indices, rows), rtol=1e-4, atol=1e-2)
