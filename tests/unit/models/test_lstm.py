"""The kernels of the LSTM's recurrence give what PyTorch's layers give."""

from types import SimpleNamespace

import pytest
import torch

from plumbline.models.batch import Batch
from plumbline.models.encoders import BiLSTM
from plumbline.models.lstm import bidirectional
from plumbline.models.lstm_kernels import PASSES, agree, kernels, layout
from plumbline.runtime.devices import arithmetic
from tests.unit.models.cpu_kernels import needs_compiler, on_the_cpu

needs_gpu = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]
LENGTHS = torch.tensor([9, 1, 4, 8, 6])
DIMENSIONS = 5


def differences(units, run, device="cpu", lengths=LENGTHS):
    """The largest difference of the states, and of each gradient relative to its largest value."""
    torch.manual_seed(units)
    encoder = BiLSTM(DIMENSIONS, units).to(device).eval()
    words = int(lengths.max())
    present = (torch.arange(words) < lengths[:, None]).to(device)
    embedded = torch.randn(len(lengths), words, DIMENSIONS, device=device, requires_grad=True)
    # With the kernels padding has no state; a gradient there is ignored.
    weights = torch.randn(len(lengths), words, 2 * units, device=device)
    real = present[:, :, None]
    batch = Batch(present.long(), present, present)
    inputs = [embedded, *encoder.parameters()]
    # Deterministic algorithms fill new tensors with NaN, so that a value which a kernel leaves out shows.
    torch.use_deterministic_algorithms(device == "cpu")
    try:
        with torch.backends.cudnn.flags(enabled=False):
            expected = encoder(embedded, batch) * real
            found = bidirectional((encoder.forwards, encoder.backwards), embedded, lengths.to(device), run)
            assert not (found * ~real).any()
            gradients = [torch.autograd.grad((states * weights).sum(), inputs) for states in (expected, found)]
    finally:
        torch.use_deterministic_algorithms(False)
    relative = [((a - b).abs().max() / a.abs().max()).item() for a, b in zip(*gradients, strict=True)]
    return (expected - found).abs().max().item(), relative


@needs_compiler
@pytest.mark.parametrize(
    ("units", "held", "rows"),
    [
        (32, 32, 8),  # All weights in shared memory, and more rows in a block than texts.
        (32, 4, 2),  # Most in registers, and a block that is not full.
        (64, 60, 1),
    ],
)
def test_the_source_gives_what_pytorchs_layers_give(tmp_path, units, held, rows):
    states, gradients = differences(units, on_the_cpu(tmp_path, units, held, rows))
    assert states < 1e-6
    assert len(gradients) == 9 and all(gradient < 2e-6 for gradient in gradients)


@needs_compiler
@pytest.mark.parametrize(
    ("units", "lengths"),
    [
        (32, [9, 1, 4, 8, 6, 9, 2, 7, 5, 3]),  # A block of eight texts, and one that is not full.
        (64, [2, 3, 1]),
        (128, [2, 3, 1]),
    ],
)
def test_rounded_products_give_nearly_what_pytorchs_layers_give(tmp_path, units, lengths):
    states, gradients = differences(units, on_the_cpu(tmp_path, units), lengths=torch.tensor(lengths))
    assert 1e-7 < states < 1e-4 and all(gradient < 5e-4 for gradient in gradients)


@needs_compiler
@pytest.mark.parametrize("scale", [1e-12, 1e6])
def test_rounded_gradients_do_not_depend_on_their_size(tmp_path, scale):
    torch.manual_seed(0)
    run, encoder = on_the_cpu(tmp_path, 32), BiLSTM(DIMENSIONS, 32)
    embedded, weights = torch.randn(5, 9, DIMENSIONS, requires_grad=True), torch.randn(5, 9, 64)
    # A text without a gradient.
    weights[1] = 0
    states = bidirectional((encoder.forwards, encoder.backwards), embedded, LENGTHS, run)
    usual, scaled = (
        torch.autograd.grad((states * weights * factor).sum(), embedded, retain_graph=True)[0] for factor in (1, scale)
    )
    assert not usual[1].any() and usual[0].any()
    torch.testing.assert_close(scaled / scale, usual, rtol=1e-3, atol=1e-4 * usual.abs().max().item())


@needs_compiler
def test_rounded_kernels_are_compared_with_exact_ones(tmp_path):
    exact, rounded = tmp_path / "exact", tmp_path / "rounded"
    for folder in (exact, rounded):
        folder.mkdir()
    exact, rounded = SimpleNamespace(run=on_the_cpu(exact, 32, 4, 2)), SimpleNamespace(run=on_the_cpu(rounded, 32))
    assert agree(32, exact, rounded, "cpu")
    for broken in PASSES:

        def run(name, recurrent, before, results, texts, words, broken=broken):
            rounded.run(name, recurrent, before, results, texts, words)
            if name == broken:
                results[0][1, 3] *= 1.2

        with pytest.warns(UserWarning, match="give other results than exact ones"):
            assert not agree(32, exact, SimpleNamespace(run=run), "cpu")

    def refuse(*_):
        raise RuntimeError("invalid launch")

    with pytest.warns(UserWarning, match=r"do not run \(invalid launch\)"):
        assert not agree(32, exact, SimpleNamespace(run=refuse), "cpu")


def test_rounded_kernels_are_for_tf32_alone(monkeypatch):
    monkeypatch.setattr("plumbline.models.encoders.kernels", lambda units, rounded: rounded)
    encoder = BiLSTM(DIMENSIONS, 32)
    assert encoder._kernels_for(9) is False
    with arithmetic("tf32"):
        assert encoder._kernels_for(9) is True


@needs_compiler
def test_the_kernels_use_as_much_shared_memory_as_the_layout_says(tmp_path):
    found = layout(64, 49_152)
    run = on_the_cpu(tmp_path, 64, found.held, found.rows)
    differences(64, run)
    # The last byte may equal what the memory was filled with.
    assert run.used == pytest.approx({"lstm_forward": found.forward, "lstm_backward": found.backward}, abs=1)


# Bytes of shared memory for a block of an H100 or H200, of an A100, and of an RTX 4090.
HOPPER, AMPERE, ADA = 232_448, 166_912, 101_376


@pytest.mark.parametrize(
    ("units", "available", "held"),
    [(128, HOPPER, 96), (64, HOPPER, 32), (64, AMPERE, 32), (64, ADA, 32), (32, 49_152, 4)],
)
def test_weights_lie_on_the_chip(units, available, held):
    found = layout(units, available)
    assert found.held == held and found.forward < found.backward <= available
    # The rest is for registers.
    assert units - held <= 32


@pytest.mark.parametrize(("units", "available"), [(128, AMPERE), (256, HOPPER), (100, HOPPER), (64, 0)])
def test_layers_that_do_not_fit_are_left_to_pytorch(units, available):
    assert layout(units, available) is None


def test_training_on_a_cpu_stays_as_it_is():
    encoder, embedded = BiLSTM(DIMENSIONS, 32), torch.randn(2, 3, DIMENSIONS)
    assert encoder.training and encoder._kernels(embedded) is None


@needs_compiler
def test_an_encoder_with_kernels_gives_what_it_gives_without(tmp_path, monkeypatch):
    run = on_the_cpu(tmp_path, 32, 32, 8)
    encoder, embedded = BiLSTM(DIMENSIONS, 32), torch.randn(5, 9, DIMENSIONS)
    present = torch.arange(9) < LENGTHS[:, None]
    batch = Batch(present.long(), present, present)
    expected = encoder(embedded, batch)
    monkeypatch.setattr(encoder, "_kernels", lambda _: SimpleNamespace(run=run))
    found = encoder(embedded, batch)
    torch.testing.assert_close(found, expected * present[:, :, None], atol=1e-6, rtol=0)


@needs_compiler
def test_a_second_derivative_is_refused(tmp_path):
    encoder, embedded = BiLSTM(DIMENSIONS, 32), torch.randn(5, 9, DIMENSIONS, requires_grad=True)
    layers = encoder.forwards, encoder.backwards
    states = bidirectional(layers, embedded, LENGTHS, on_the_cpu(tmp_path, 32, 32, 8))
    (gradient,) = torch.autograd.grad(states.pow(2).sum(), embedded, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        gradient.pow(2).sum().backward()


def test_gradients_in_tf32_are_computed_by_them(monkeypatch):
    monkeypatch.setattr("plumbline.models.encoders.kernels", lambda units, rounded: rounded)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    on_a_gpu = SimpleNamespace(dtype=torch.float32, is_cuda=True, device=SimpleNamespace(index=0), shape=(2, 3))
    encoder = BiLSTM(DIMENSIONS, 32)
    assert encoder._kernels(on_a_gpu) is False, "training"
    assert encoder.eval()._kernels(on_a_gpu) is None
    with arithmetic("tf32"):
        assert encoder._kernels(on_a_gpu) is True
        with torch.no_grad():
            assert encoder._kernels(on_a_gpu) is None


@needs_compiler
def test_constant_weights_need_no_gradient(tmp_path, monkeypatch):
    run, encoder = on_the_cpu(tmp_path, 32, 4, 2), BiLSTM(DIMENSIONS, 32)
    embedded, found = torch.randn(5, 9, DIMENSIONS, requires_grad=True), []
    for constant in (False, True):
        encoder.requires_grad_(not constant)
        with monkeypatch.context() as patch:
            if constant:
                patch.setattr(torch, "stack", None)
            states = bidirectional((encoder.forwards, encoder.backwards), embedded, LENGTHS, run)
            found += torch.autograd.grad(states.square().sum(), embedded)
    assert torch.equal(*found)


def fits(units):
    """Whether the GPU has room for the weights."""
    return layout(units, torch.cuda.get_device_properties().shared_memory_per_block_optin) is not None


class TestOnAGpu:
    """The kernels themselves."""

    pytestmark = needs_gpu

    @pytest.mark.parametrize("units", [32, 64, 128])
    @pytest.mark.parametrize("texts", [1, 5, 32, 50])
    def test_they_give_what_pytorchs_layers_give(self, units, texts):
        if not fits(units):
            pytest.skip("this GPU has no room for the weights")
        own = kernels(units)
        lengths = torch.randint(1, 40, (texts,), generator=torch.Generator().manual_seed(texts))
        states, gradients = differences(units, own.run, "cuda", lengths)
        assert states < 2e-6 and all(gradient < 1e-5 for gradient in gradients)
        rounded = kernels(units, rounded=True)
        assert rounded is not own, "this GPU has tensor cores"
        states, gradients = differences(units, rounded.run, "cuda", lengths)
        assert states < 1e-4 and all(gradient < 1e-3 for gradient in gradients)

    def test_a_text_does_not_depend_on_the_others(self):
        own = kernels(64)
        encoder = BiLSTM(DIMENSIONS, 64).cuda()
        embedded = torch.randn(20, 11, DIMENSIONS, device="cuda")
        lengths = torch.arange(20, device="cuda") % 11 + 1
        layers = encoder.forwards, encoder.backwards
        together = bidirectional(layers, embedded, lengths, own.run)
        some = torch.tensor([17, 3, 9], device="cuda")
        torch.testing.assert_close(
            bidirectional(layers, embedded[some], lengths[some], own.run), together[some], atol=1e-6, rtol=0
        )

    def test_training_uses_them_and_evaluation_does_not(self):
        encoder, embedded = BiLSTM(DIMENSIONS, 64).cuda(), torch.randn(2, 3, DIMENSIONS, device="cuda")
        assert fits(64) and encoder._kernels(embedded) is kernels(64) is not None
        with arithmetic("tf32"):
            assert encoder._kernels(embedded) is kernels(64, rounded=True)
        assert encoder._kernels(embedded.double()) is None
        with torch.autocast("cuda", torch.bfloat16):
            assert encoder._kernels(embedded) is None
        assert encoder.eval()._kernels(embedded) is None
