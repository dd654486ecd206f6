"""Attention with gradients in half precision: outputs stay, gradients have 11 significant bits at any size."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from plumbline.runtime.devices import PRECISIONS, arithmetic
from plumbline.runtime.half_gradients import HalfGradients

# A number of half precision differs from the nearest one by this much, relative to itself; sums of many such numbers,
# some of which cancel, by a few times it.
ROUNDING = 2.0**-11


def inputs(rows=3, tokens=7, heads=2, size=16, device="cpu"):
    generator = torch.Generator().manual_seed(0)
    parts = torch.randn(4, rows, tokens, heads, size, generator=generator).transpose(2, 3).to(device)
    return [part.clone() for part in parts]


def masks(rows, tokens, device="cpu"):
    """None, one of padding that differs between rows, and the same one as numbers."""
    lengths = torch.arange(tokens, tokens - rows, -1, device=device)
    padding = torch.arange(tokens, device=device) < lengths[:, None]
    padding = padding[:, None, None].expand(rows, 1, tokens, tokens)
    return {
        "none": None,
        "boolean": padding,
        "numbers": torch.zeros(padding.shape, device=device).masked_fill(~padding, torch.finfo(torch.float32).min),
    }


def output_and_gradients(attention, parts, **options):
    *factors, weights = parts
    factors = [factor.clone().requires_grad_() for factor in factors]
    output = attention(*factors, **options)
    return [output.detach(), *torch.autograd.grad(output, factors, weights)]


@pytest.mark.parametrize("mask", ["none", "boolean", "numbers"])
def test_on_a_cpu_attention_is_pytorchs(mask):
    options = {"attn_mask": masks(3, 7)[mask]}
    ours = output_and_gradients(HalfGradients().attention, inputs(), **options)
    theirs = output_and_gradients(scaled_dot_product_attention, inputs(), **options)
    assert all(map(torch.equal, ours, theirs))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_only_one_precision_uses_it(precision, monkeypatch):
    used = []
    plain = HalfGradients.attention
    monkeypatch.setattr(HalfGradients, "attention", lambda self, *a, **o: (used.append(o), plain(self, *a, **o))[1])
    query, key, value, _ = inputs()
    with arithmetic(precision):
        output = scaled_dot_product_attention(query, key, value, scale=0.5)
    assert used == ([{"scale": 0.5}] if precision == "bf16x3-tf32" else [])
    assert torch.equal(output, scaled_dot_product_attention(query, key, value, scale=0.5))


@pytest.mark.parametrize("mask", ["boolean", "numbers"])
def test_a_mask_is_prepared_once_for_all_layers(mask):
    given, half_gradients = masks(3, 7)[mask], HalfGradients()
    single, half = half_gradients._biases(given)
    assert (single.dtype, half.dtype) == (torch.float32, torch.float16)
    assert single.shape == half.shape == given.shape
    assert single.stride(-2) % 16 == half.stride(-2) % 16 == 0
    allowed = masks(3, 7)["boolean"]
    for bias in (single, half):
        assert (bias[allowed] == 0).all() and (bias[~allowed] < -60_000).all()
    again = half_gradients._biases(given)
    assert again[0] is single and again[1] is half
    assert half_gradients._biases(given.clone())[0] is not single
    changed = given.clone()
    before = half_gradients._biases(changed)
    changed[0] = given[1]
    assert torch.equal(half_gradients._biases(changed)[0][0], before[0][1]), "a mask changed in place is another one"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("size", [1.0, 1e-9, 1e9])
@pytest.mark.parametrize("mask", ["none", "boolean", "numbers", "causal"])
@pytest.mark.parametrize("tokens", [7, 33, 200])
def test_outputs_stay_and_gradients_are_close_on_a_gpu(tokens, mask, size):
    parts = inputs(tokens=tokens, size=64, device="cuda")
    # Rows whose gradients differ much in size, which share no scale.
    parts[3] *= size * torch.tensor([1.0, 1e-4, 1e4], device="cuda").view(3, 1, 1, 1)
    options = {"is_causal": True} if mask == "causal" else {"attn_mask": masks(3, tokens, "cuda")[mask]}
    exact = {k: v.double() if torch.is_tensor(v) and v.is_floating_point() else v for k, v in options.items()}
    true = output_and_gradients(scaled_dot_product_attention, [part.double() for part in parts], **exact)
    output, *gradients = output_and_gradients(HalfGradients().attention, parts, **options)
    plain = scaled_dot_product_attention(*parts[:3], **options)
    assert (output - true[0]).abs().max() <= 2 * (plain - true[0]).abs().max() + 1e-6
    for ours, theirs in zip(gradients, true[1:], strict=True):
        assert ours.dtype == torch.float32
        for row, expected in zip(ours.double(), theirs, strict=True):
            assert 0 < (row - expected).norm() < 4 * ROUNDING * expected.norm()
