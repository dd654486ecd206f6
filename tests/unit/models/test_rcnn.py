"""The recurrent convolution against a plain loop, and its hand-written derivatives against differences."""

import warnings

import numpy as np
import pytest
import torch

from plumbline.models.fused import Fused
from plumbline.models.rcnn import RCNN, cell_backward, cell_forward

H, D, LENGTH = 4, 3, 7


def made(seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    layer = RCNN(D, H).to(dtype)
    with torch.no_grad():
        for bias in (layer.gate_bias, layer.bias):
            bias.normal_()
    return layer


def numpy_rcnn(layer, way, inputs, read):
    """States [L, H] of one direction of one text, word by word, as Lei et al. write them down."""
    w = {name: parameter.detach().double().numpy()[way] for name, parameter in layer.named_parameters()}
    c1 = c2 = h = np.zeros(H)
    states = []
    for x, here in zip(inputs, read, strict=True):
        if here:
            kept = 1 / (1 + np.exp(-(w["enter"][0] @ x + h @ w["recur"] + w["gate_bias"][0])))
            c1, c2 = (
                kept * c1 + (1 - kept) * (w["enter"][1] @ x),
                kept * c2 + (1 - kept) * (c1 + w["enter"][2] @ x),
            )
            h = np.tanh(c2 + w["bias"][0])
        states.append(h)
    return np.array(states)


def golden(layer, inputs, read):
    ahead = numpy_rcnn(layer, 0, inputs, read)
    return np.concatenate([ahead, numpy_rcnn(layer, 1, inputs[::-1], read[::-1])[::-1]], axis=1)


def texts(seed=1, rows=3):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(rows, LENGTH, D, dtype=torch.float64, generator=generator)
    read = torch.rand(rows, LENGTH, generator=generator) < 0.6
    read[:, 0] = torch.arange(rows) % 2 == 0  # Some skip their first word, which is where h = 0 matters.
    return inputs, read


def test_states_are_those_of_a_plain_loop():
    layer, (inputs, read) = made(), texts()
    states, last = layer(inputs, read).transpose(0, 1), layer.last(inputs, read)
    for row in range(len(inputs)):
        expected = golden(layer, inputs[row].numpy(), read[row].numpy())
        np.testing.assert_allclose(states[row].detach().numpy(), expected, atol=1e-12)
        np.testing.assert_allclose(
            last[row].detach().numpy(), np.concatenate([expected[-1, :H], expected[0, H:]]), atol=1e-12
        )


def test_a_skipped_word_leaves_the_state_as_it_was_and_may_be_anything():
    layer, (inputs, read) = made(dtype=torch.float32), texts()
    inputs = inputs.float()
    other = torch.where(read[..., None], inputs, 100.0)
    states = layer(inputs, read).transpose(0, 1)
    assert torch.equal(states, layer(other, read).transpose(0, 1))
    ahead = states[..., :H]
    skipped = ~read[:, 1:]
    assert skipped.any() and torch.equal(ahead[:, 1:][skipped], ahead[:, :-1][skipped])
    assert not torch.equal(ahead[:, 1:][~skipped], ahead[:, :-1][~skipped])


def test_padding_changes_nothing():
    layer, (inputs, read) = made(), texts()
    wider = torch.cat([inputs, torch.ones_like(inputs[:, :2])], dim=1)
    padded = torch.cat([read, torch.zeros_like(read[:, :2])], dim=1)
    torch.testing.assert_close(layer(wider, padded)[:LENGTH], layer(inputs, read), atol=1e-12, rtol=0)
    torch.testing.assert_close(layer.last(wider, padded), layer.last(inputs, read), atol=1e-12, rtol=0)


def test_a_text_of_which_nothing_is_read_has_the_state_0():
    layer, (inputs, read) = made(), texts()
    assert not layer.last(inputs, torch.zeros_like(read)).any()


def test_derivatives_are_those_of_differences():
    layer, (inputs, read) = made(), texts()
    names = [name for name, _ in layer.named_parameters()]

    def states(given, *parameters):
        return torch.func.functional_call(layer, dict(zip(names, parameters, strict=True)), (given, read))

    parameters = [parameter.detach().requires_grad_() for parameter in layer.parameters()]
    assert torch.autograd.gradcheck(states, (inputs.requires_grad_(), *parameters))


def test_weights_begin_by_glorot_and_biases_at_0():
    torch.manual_seed(0)
    layer = RCNN(300, 200)
    assert not layer.bias.any() and not layer.gate_bias.any()
    for weight, bound in ((layer.enter, (6 / 500) ** 0.5), (layer.recur, (6 / 400) ** 0.5)):
        assert 0.99 * bound < weight.abs().max() <= bound
        assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.01)


def test_mixed_precision_gives_states_of_full_precision():
    layer, (inputs, read) = made(dtype=torch.float32), texts()
    with torch.autocast("cpu", torch.bfloat16):
        states = layer(inputs.float(), read)
    assert states.dtype == torch.float32
    torch.testing.assert_close(states, layer(inputs.float(), read), atol=0.05, rtol=0)


def test_a_kernel_that_cannot_be_compiled_is_done_without(monkeypatch):
    class OnGPU:
        is_cuda = True

    def refused(*_):
        raise RuntimeError("no compiler\nat line 1")

    monkeypatch.setattr(torch.cuda.jiterator, "_create_multi_output_jit_fn", lambda code, outputs: refused)
    fused = Fused(lambda given: (given,), "", 1)
    given = OnGPU()
    with pytest.warns(UserWarning, match="a CUDA kernel cannot be compiled, so training is slower: no compiler$"):
        assert fused(given) == (given,)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fused(given) == (given,)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("fused", [cell_forward, cell_backward], ids=["cell_forward", "cell_backward"])
def test_kernels_give_what_the_operations_give(fused):
    inputs = torch.randn(8, 2, 5, 4, device="cuda")[: 7 if fused is cell_forward else 8]
    inputs[-2:] = (torch.arange(20, device="cuda").view(5, 4) % 3 > 0).float()
    for kernel, plain in zip(fused(*inputs), fused.plain(*inputs), strict=True):
        torch.testing.assert_close(kernel, plain, atol=1e-6, rtol=1e-5)
    assert fused._kernel
