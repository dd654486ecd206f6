"""The kernels of LSTMs compiled for the CPU, where the threads of a block are threads of the processor."""

import ctypes
import shutil
import subprocess

import pytest

from plumbline.models.lstm_kernels import ROUNDED_ROWS, arranged
from plumbline.models.lstm_rounded_source import ROUNDED_SOURCE
from plumbline.models.lstm_source import EXACT_SOURCE, SHARED_SOURCE

needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")

# What a block needs of CUDA.
BLOCK = """
#include <algorithm>
#include <cmath>
#include <cstring>
#include <pthread.h>
#include <thread>
#include <vector>
#define __device__
#define __global__ static
#define __shared__ static
#define __launch_bounds__(...)
struct float4 { float x, y, z, w; };
struct uint4 { unsigned x, y, z, w; };
using std::max;
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
struct Index { int x, y, z; };
static thread_local Index threadIdx, blockIdx;
static pthread_barrier_t block;
static void __syncthreads() { pthread_barrier_wait(&block); }
alignas(16) static float4 memory[1 << 14];
"""

# The product of the tensor cores: the threads of a warp show each other their parts of both factors.
WARPS = """
static unsigned short rounded(float value) {
    // To the nearest value of half precision, ties to even; values below 2^-14 in steps of 2^-24.
    unsigned sign = std::signbit(value) ? 0x8000 : 0;
    float size = std::fabs(value);
    if (std::isnan(value)) return 0x7E00;
    if (size >= 65520.0f) return sign | 0x7C00;
    int exponent = size < 6.103515625e-5f ? -14 : std::ilogb(size);
    long steps = std::lrint(std::ldexp((double)size, 10 - exponent));
    return sign | (size < 6.103515625e-5f ? steps : ((exponent + 15) << 10) + steps - 1024);
}
static unsigned packed(float first, float second) { return rounded(first) | (unsigned)rounded(second) << 16; }
static double value_of(unsigned half) {
    int exponent = half >> 10 & 31;
    double size = exponent ? std::ldexp(1024 + (half & 1023), exponent - 25) : std::ldexp(half & 1023, -24);
    return half & 0x8000 ? -size : size;
}
struct Part { unsigned first[4], second[2]; };
static Part parts[16][32];
static pthread_barrier_t warps[16];
static void multiply(float (&sums)[4], const uint4& first, unsigned low, unsigned high) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4;
    parts[warp][lane] = {{first.x, first.y, first.z, first.w}, {low, high}};
    pthread_barrier_wait(&warps[warp]);
    for (int c = 0; c < 4; c++) {
        int column = 2 * pair + c % 2;
        double sum = sums[c];
        for (int k = 0; k < 16; k++) {
            // Row `group + c / 2 * 8` of the first factor and `column` of the second one.
            const Part& a = parts[warp][group * 4 + k % 8 / 2], & b = parts[warp][column * 4 + k % 8 / 2];
            sum += value_of(a.first[c / 2 + k / 8 * 2] >> k % 2 * 16 & 0xFFFF)
                * value_of(b.second[k / 8] >> k % 2 * 16 & 0xFFFF);
        }
        sums[c] = (float)sum;
    }
    pthread_barrier_wait(&warps[warp]);
}
"""

RUN = """
template <typename Work> static void run(int blocks, int models, Work work) {
    pthread_barrier_init(&block, nullptr, THREADS);
    START;
    memset(memory, 0xA5, sizeof memory);
    for (int x = 0; x < blocks; x++)
        for (int yz = 0; yz < 2 * models; yz++) {
            std::vector<std::thread> threads;
            for (int u = 0; u < THREADS; u++)
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
    int blocks, int models, const float* projected, const WEIGHT* recurrent, const int* lengths, float* hidden,
    float4* gates, float* cells, float* previous, int texts, int words) {
    run(blocks, models, [=] {
        lstm_forward(projected, recurrent, lengths, hidden, gates, cells, previous, texts, words);
    });
}
extern "C" void run_lstm_backward(
    int blocks, int models, const float* d_hidden, const WEIGHT* recurrent, const int* lengths, const float4* gates,
    const float* cells, float* d_projected, int texts, int words) {
    run(blocks, models, [=] {
        lstm_backward(d_hidden, recurrent, lengths, gates, cells, d_projected, texts, words);
    });
}
"""


def on_the_cpu(folder, units, held=None, rows=ROUNDED_ROWS):
    """The kernels as a function of the CPU that runs one pass: the exact ones or, without `held`, the rounded ones."""
    exact = held is not None
    source = SHARED_SOURCE + (EXACT_SOURCE if exact else WARPS + ROUNDED_SOURCE)
    source = source.replace('extern "C" __global__', "__global__").replace("extern __shared__ float4 memory[];", "")
    (folder / "lstm.cpp").write_text(BLOCK + source + RUN)
    start = "for (auto& warp : warps) pthread_barrier_init(&warp, nullptr, 32)"
    defined = {"H": units, "HELD": held, "ROWS": rows, "THREADS": units, "WEIGHT": "float4", "START": ""}
    if not exact:
        defined = {"H": units, "THREADS": 2 * units, "WEIGHT": "float", "START": start}
    macros = [f"-D{name}={value}" for name, value in defined.items()]
    command = ["c++", "-std=c++17", "-O1", "-pthread", "-shared", "-fPIC", *macros, "lstm.cpp", "-o", "lstm.so"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "lstm.so"))

    def run(name, recurrent, before, results, texts, words):
        first, *others = before
        weights = arranged(name, recurrent) if exact else recurrent.contiguous()
        passed = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (first, weights, *others, *results)]
        getattr(library, f"run_{name}")(-(-texts // rows), len(recurrent), *passed, texts, words)
        run.used[name] = library.used()

    run.used = {}
    return run
