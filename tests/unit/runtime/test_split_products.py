"""Products of split matrices are nearly those of single precision, and so are their gradients."""

import pytest
import torch
from torch import nn

from plumbline.runtime import split_products
from plumbline.runtime.devices import PRECISIONS, arithmetic
from plumbline.runtime.split_products import SplitMatrix, beside, split

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


def test_a_bias_is_added_exactly():
    x, bias = torch.tensor([[1.0], [2.0]]), torch.tensor([1 / 3])
    assert torch.equal(SplitMatrix(torch.ones(1, 1), bias).after(x), x + bias)
    assert torch.equal(SplitMatrix(torch.ones(1, 1), bias).transposed.after(x), x), "gradients have no bias"


def test_a_bias_for_each_row_is_left_to_pytorch():
    x, weight, rows = random(3, 4), random(4, 5, seed=1), random(3, 5, seed=2)
    expected = torch.addmm(rows, x, weight)
    with arithmetic("bf16x3"):
        assert torch.equal(torch.addmm(rows, x, weight), expected)


def test_layers_of_one_input_share_its_parts(monkeypatch):
    computed = []
    monkeypatch.setattr(split_products, "beside", lambda x: computed.append(x.clone()) or beside(x))
    first, second, x = nn.Linear(4, 3).requires_grad_(False), nn.Linear(4, 5).requires_grad_(False), random(2, 3, 4)
    with arithmetic("bf16x3"):
        outputs = first(x), second(x)
        assert len(computed) == 1
        assert torch.allclose(outputs[1], second.double()(x.double()).float(), atol=1e-4)
        x.add_(1)
        changed = first(x)
        other = first(random(2, 3, 4, seed=1))
    assert len(computed) == 3, "a changed input, and another one, are split again"
    assert torch.allclose(changed, first(x), atol=1e-4) and not torch.allclose(other, changed, atol=1e-1)


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


def test_gradients_may_be_less_exact_than_outputs(monkeypatch):
    """With `bf16x3-tf32` outputs are those of `bf16x3`, and products of gradients are computed with TF32 allowed."""
    layers, x = Layers().requires_grad_(False), random(3, 5, 32)
    allowed = []
    gradient = SplitMatrix.gradient

    def observed(matrix, gradients):
        product = torch.Tensor.__matmul__
        with monkeypatch.context() as patch:
            patch.setattr(
                torch.Tensor,
                "__matmul__",
                lambda *factors: (allowed.append(torch.backends.cuda.matmul.allow_tf32), product(*factors))[1],
            )
            return gradient(matrix, gradients)

    monkeypatch.setattr(SplitMatrix, "gradient", observed)
    results = {}
    for precision in ("bf16x3", "bf16x3-tf32"):
        with arithmetic(precision):
            inputs = x.clone().requires_grad_()
            output = layers(inputs)
            allowed.clear()
            results[precision] = output.detach(), torch.autograd.grad((output**2).sum(), inputs)[0]
            assert allowed == [precision == "bf16x3-tf32"] * 3
            assert not torch.backends.cuda.matmul.allow_tf32
    (output, split_gradient), (same_output, exact_gradient) = results.values()
    assert torch.equal(output, same_output)
    assert 0 < (split_gradient - exact_gradient).abs().max() < 1e-4 * exact_gradient.abs().max()


def test_a_trained_bias_has_its_gradient():
    layers, x = Layers().requires_grad_(False), random(3, 5, 32)
    layers.first.bias.requires_grad_(True)
    with arithmetic("bf16x3"):
        (gradient,) = torch.autograd.grad(layers(x).sum(), layers.first.bias)
    assert gradient.abs().sum() > 0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("shape", [(1, 4), (3, 768), (1000, 3072), (5, 6), (7, 1), (0, 8)])
@pytest.mark.parametrize("start", [0, 1])
def test_the_kernel_splits_as_pytorch_does(shape, start):
    """Also numbers between two bfloat16 numbers, tiny ones, and tensors that start between two blocks of 16 bytes."""
    size = shape[0] * shape[1]
    values = random(size + start)
    values[::3] = (values[::3].bfloat16().view(torch.int16).int() * 2**16 + 2**15).view(torch.float32)
    values[::7] *= 1e-30
    x = values[start:].view(shape)
    assert torch.equal(beside(values.cuda()[start:].view(shape)).cpu(), beside(x))


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
        assert torch.equal(layers(x), before) == (not precision.startswith("bf16x3"))
        assert torch.backends.cuda.matmul.allow_tf32 == (precision == "tf32")
    assert torch.equal(layers(x), before)
    assert not torch.backends.cuda.matmul.allow_tf32
