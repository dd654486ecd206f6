"""Products of split matrices are nearly those of single precision, and so are their gradients."""

import pytest
import torch
from torch import nn

from plumbline.runtime.devices import PRECISIONS, arithmetic
from plumbline.runtime.split_products import SplitMatrix, split

# The most that a number changes, relative to itself, when it is rounded to bfloat16, and as the two parts of a split.
BFLOAT16, SPLIT = 2.0**-8, 2.0**-16


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_the_parts_sum_to_the_values():
    values = random(1000)
    large, small = split(values)
    assert large.dtype == small.dtype == torch.bfloat16
    assert ((large.float() - values).abs() <= BFLOAT16 * values.abs()).all()
    assert ((large.double() + small.double() - values).abs() <= SPLIT * values.abs()).all()


def test_a_product_by_hand():
    """1 + 2^-10 has a small part, 2^-10; the product of two small parts is left out."""
    x = torch.tensor([[1 + 2**-10]])
    assert SplitMatrix(x).after(x).item() == 1 + 2 * 2**-10
    assert SplitMatrix(x).transposed.after(torch.ones(1, 1)).item() == 1 + 2**-10


class Layers(nn.Module):
    """A linear layer, one without bias, and GPT-2's product of a flattened input."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(32, 48), nn.Linear(48, 40, bias=False)
        self.weight, self.bias = nn.Parameter(random(40, 8)), nn.Parameter(random(8, seed=1))

    def forward(self, x):
        hidden = torch.tanh(self.second(torch.tanh(self.first(x))))
        return torch.addmm(self.bias, hidden.flatten(0, -2), self.weight).unflatten(0, x.shape[:-1])


def output_and_gradients(layers, x):
    x = x.clone().requires_grad_()
    output = layers(x)
    (gradient,) = torch.autograd.grad((output**2).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((gradient**2).sum(), x)
    return [part.detach().double() for part in (output, gradient, second)]


def test_layers_with_constant_weights_have_nearly_exact_outputs_and_gradients():
    layers, x = Layers().requires_grad_(False), random(3, 5, 32)
    exact = output_and_gradients(Layers().double(), x.double())
    with arithmetic("bf16x3"):
        rounded = output_and_gradients(layers, x)
    for weight in layers.parameters():
        weight.copy_(weight.bfloat16())
    coarse = output_and_gradients(layers, x)
    for true, near, far in zip(exact, rounded, coarse, strict=True):
        scale = true.abs().max()
        assert 0 < (near - true).abs().max() < 1e-4 * scale
        assert (far - true).abs().max() > 20 * (near - true).abs().max()


def test_layers_that_are_trained_are_computed_as_always():
    layers, x = Layers(), random(3, 5, 32)
    with arithmetic("bf16x3"):
        inside = layers(x)
        (gradient,) = torch.autograd.grad(inside.sum(), layers.first.weight)
    assert torch.equal(inside, layers(x))
    assert gradient.abs().sum() > 0


@pytest.mark.parametrize("precision", PRECISIONS)
def test_arithmetic_ends_with_its_block(precision):
    layers, x = Layers().requires_grad_(False), random(2, 32)
    before = layers(x)
    with arithmetic(precision):
        assert torch.equal(layers(x), before) == (precision != "bf16x3")
        assert torch.backends.cuda.matmul.allow_tf32 == (precision == "tf32")
    assert torch.equal(layers(x), before)
    assert not torch.backends.cuda.matmul.allow_tf32
