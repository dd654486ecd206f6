"""The kernels of the LSTM's recurrence give what PyTorch's layers give.

Their source is also compiled for the CPU, where the threads of a block are threads of the processor.
"""

import ctypes
import shutil
import subprocess

import pytest
import torch

from plumbline.models.batch import Batch
from plumbline.models.encoders import BiLSTM
from plumbline.models.lstm import bidirectional
from plumbline.models.lstm_kernels import SOURCE, Kernels, kernels, layout

needs_gpu = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]
needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
LENGTHS = torch.tensor([9, 1, 4, 8, 6])
DIMENSIONS = 5

# What a block needs of CUDA, for the CPU.
BLOCK = """
#include <algorithm>
#include <cmath>
#include <cstring>
#include <pthread.h>
#include <thread>
#include <vector>
#define __device__
#define __global__ static
#define __launch_bounds__(...)
struct float4 { float x, y, z, w; };
using std::max;
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
struct Index { int x, y, z; };
static thread_local Index threadIdx, blockIdx;
static pthread_barrier_t block;
static void __syncthreads() { pthread_barrier_wait(&block); }
alignas(16) static float4 memory[1 << 14];
"""
RUN = """
template <typename Work> static void run(int blocks, int models, Work work) {
    pthread_barrier_init(&block, nullptr, H);
    memset(memory, 0xA5, sizeof memory);
    for (int x = 0; x < blocks; x++)
        for (int yz = 0; yz < 2 * models; yz++) {
            std::vector<std::thread> threads;
            for (int u = 0; u < H; u++)
                threads.emplace_back([=] { threadIdx = {u, 0, 0}; blockIdx = {x, yz % 2, yz / 2}; work(); });
            for (auto& thread : threads) thread.join();
        }
}
// Bytes up to the last one of shared memory that the last pass wrote.
extern "C" int used() {
    const unsigned char* bytes = reinterpret_cast<unsigned char*>(memory);
    int end = sizeof memory;
    while (end && bytes[end - 1] == 0xA5) end--;
    return end;
}
extern "C" void run_lstm_forward(
    int blocks, int models, const float* projected, const float4* recurrent, const int* lengths, float* hidden,
    float4* gates, float* cells, float* previous, int texts, int words) {
    run(blocks, models, [=] {
        lstm_forward(projected, recurrent, lengths, hidden, gates, cells, previous, texts, words);
    });
}
extern "C" void run_lstm_backward(
    int blocks, int models, const float* d_hidden, const float4* recurrent, const int* lengths, const float4* gates,
    const float* cells, float* d_projected, int texts, int words) {
    run(blocks, models, [=] {
        lstm_backward(d_hidden, recurrent, lengths, gates, cells, d_projected, texts, words);
    });
}
"""


def on_the_cpu(folder, units, held, rows):
    """The kernels as a function of the CPU that runs one pass."""
    source = SOURCE.replace('extern "C" __global__', "__global__").replace("extern __shared__ float4 memory[];", "")
    (folder / "lstm.cpp").write_text(BLOCK + source + RUN)
    macros = [f"-DH={units}", f"-DHELD={held}", f"-DROWS={rows}"]
    command = ["c++", "-std=c++17", "-O1", "-pthread", "-shared", "-fPIC", *macros, "lstm.cpp", "-o", "lstm.so"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "lstm.so"))

    def run(name, models, texts, units, *arguments):
        passed = [ctypes.c_void_p(a.data_ptr()) if torch.is_tensor(a) else a for a in arguments]
        getattr(library, f"run_{name}")(-(-texts // rows), models, *passed)
        run.used[name] = library.used()

    run.used = {}
    return run


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
    with torch.backends.cudnn.flags(enabled=False):
        expected = encoder(embedded, batch)
        found = bidirectional((encoder.forwards, encoder.backwards), embedded, lengths.to(device), run)
        inputs = [embedded, *encoder.parameters()]
        expected = expected * real
        assert not (found * ~real).any()
        gradients = [torch.autograd.grad((states * weights).sum(), inputs) for states in (expected, found)]
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
    assert len(gradients) == 9 and max(gradients) < 2e-6


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
    monkeypatch.setattr(encoder, "_kernels", lambda _: Kernels({}, None))
    monkeypatch.setattr(Kernels, "run", lambda self, *arguments: run(*arguments))
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
        assert states < 2e-6 and max(gradients) < 1e-5

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
        assert encoder._kernels(embedded.double()) is None
        with torch.autocast("cuda", torch.bfloat16):
            assert encoder._kernels(embedded) is None
        assert encoder.eval()._kernels(embedded) is None
