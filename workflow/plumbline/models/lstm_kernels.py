"""CUDA kernels of the recurrence of a bidirectional LSTM, one for each pass, with weights that stay on the chip."""

from functools import cache
from typing import Any, NamedTuple

import torch

from plumbline.runtime.kernels import load_kernels

SOURCE = r"""
// The recurrence of LSTMs in both directions: a block reads ROWS texts of one model in one direction, word by word, and
// a thread computes one unit. The recurrent weights stay on the chip: those of the first HELD units in shared memory,
// those of the others in registers. Gates are ordered i, f, g, o, as in PyTorch.
//
// The second direction reads each text from its last word to its first. A block ends after its longest text; states of
// padding are 0.

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

__device__ inline void add_product(float4& sum, float factor, const float4& weights) {
    sum.x += factor * weights.x;
    sum.y += factor * weights.y;
    sum.z += factor * weights.z;
    sum.w += factor * weights.w;
}

__device__ inline void add_products(float4& sum, const float4& factors, const float4& weights) {
    sum.x += factors.x * weights.x;
    sum.y += factors.y * weights.y;
    sum.z += factors.z * weights.z;
    sum.w += factors.w * weights.w;
}

// The text of a row; the last one again, if there are fewer.
__device__ inline int text_of(int row, int texts) {
    return blockIdx.z * texts + (row < texts ? row : texts - 1);
}

// The index of a unit's value in [models][texts][words][2][H], at a step of the direction.
__device__ inline int index_of(int text, int step, int words, int length, int direction) {
    int word = direction && step < length ? length - 1 - step : step;
    return ((text * words + word) * 2 + direction) * H + threadIdx.x;
}

// The input's part of a unit's gates: four gates of H values for each value of a result.
__device__ inline float4 entering_of(
    const float* projected, int text, int step, int words, int length, int direction) {
    const float* from = projected + 4 * (index_of(text, step, words, length, direction) - threadIdx.x) + threadIdx.x;
    return make_float4(from[0], from[H], from[2 * H], from[3 * H]);
}

// The same place of their gradient.
__device__ inline void write_gates(float* d_projected, int at, const float4& values) {
    float* to = d_projected + 4 * (at - threadIdx.x) + threadIdx.x;
    to[0] = values.x;
    to[H] = values.y;
    to[2 * H] = values.z;
    to[3 * H] = values.w;
}

// projected: [models][texts][words][2][4][H], the input's part of the gates; recurrent: [models][2][H previous units]
// [H units], four gates each; lengths: [models][texts]. Results, [models][texts][words][2][H]: hidden states, gates,
// and the cell and hidden state before each word.
extern "C" __global__ void __launch_bounds__(H, 1) lstm_forward(
    const float* __restrict__ projected, const float4* __restrict__ recurrent, const int* __restrict__ lengths,
    float* __restrict__ hidden, float4* __restrict__ gates, float* __restrict__ cells, float* __restrict__ previous,
    int texts, int words) {
    extern __shared__ float4 memory[];
    float4* weights = memory;
    float* states = reinterpret_cast<float*>(memory + HELD * H);
    const int unit = threadIdx.x, direction = blockIdx.y, first = blockIdx.x * ROWS;
    recurrent += (blockIdx.z * 2 + direction) * H * H + unit;
#pragma unroll 16
    for (int k = 0; k < HELD; k++) weights[k * H + unit] = recurrent[k * H];
    float4 own[H - HELD + 1];
#pragma unroll
    for (int k = HELD; k < H; k++) own[k - HELD] = recurrent[k * H];
    int text[ROWS], length[ROWS];
    float cell[ROWS], state[ROWS];
    float4 later[ROWS];
    int longest = 0;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        text[r] = text_of(first + r, texts);
        length[r] = lengths[text[r]];
        longest = max(longest, length[r]);
        cell[r] = state[r] = states[r * H + unit] = 0.0f;
        later[r] = entering_of(projected, text[r], 0, words, length[r], direction);
    }
    __syncthreads();
    for (int step = 0; step < longest; step++) {
        const float* now = states + step % 2 * ROWS * H;
        float* next = states + (step + 1) % 2 * ROWS * H;
        float4 entering[ROWS], sums[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            entering[r] = later[r];
            sums[r] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            // What the next step reads arrives while the products are computed.
            if (step + 1 < longest) later[r] = entering_of(projected, text[r], step + 1, words, length[r], direction);
        }
#pragma unroll 1
        for (int k = 0; k < HELD; k += 4) {
            const float4* at = weights + k * H + unit;
            const float4 a = at[0], b = at[H], c = at[2 * H], d = at[3 * H];
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const float4 before = *reinterpret_cast<const float4*>(now + r * H + k);
                add_product(sums[r], before.x, a);
                add_product(sums[r], before.y, b);
                add_product(sums[r], before.z, c);
                add_product(sums[r], before.w, d);
            }
        }
#pragma unroll
        for (int k = HELD; k < H; k += 4) {
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const float4 before = *reinterpret_cast<const float4*>(now + r * H + k);
                add_product(sums[r], before.x, own[k - HELD]);
                add_product(sums[r], before.y, own[k - HELD + 1]);
                add_product(sums[r], before.z, own[k - HELD + 2]);
                add_product(sums[r], before.w, own[k - HELD + 3]);
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float i = sigmoid(sums[r].x + entering[r].x), f = sigmoid(sums[r].y + entering[r].y);
            const float g = tanhf(sums[r].z + entering[r].z), o = sigmoid(sums[r].w + entering[r].w);
            const float before = cell[r], state_before = state[r];
            cell[r] = f * before + i * g;
            state[r] = next[r * H + unit] = o * tanhf(cell[r]);
            if (first + r < texts) {
                const int to = index_of(text[r], step, words, length[r], direction);
                hidden[to] = step < length[r] ? state[r] : 0.0f;
                gates[to] = make_float4(i, f, g, o);
                cells[to] = before;
                previous[to] = state_before;
            }
        }
        __syncthreads();
    }
    for (int step = longest; step < words; step++)
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (first + r < texts) {
                const int to = index_of(text[r], step, words, length[r], direction);
                // The gradient of the weights reads the previous states of padding too.
                hidden[to] = previous[to] = 0.0f;
            }
}

// The gradient of `projected` from that of the hidden states; recurrent: [models][2][H units][H previous units].
extern "C" __global__ void __launch_bounds__(H, 1) lstm_backward(
    const float* __restrict__ d_hidden, const float4* __restrict__ recurrent, const int* __restrict__ lengths,
    const float4* __restrict__ gates, const float* __restrict__ cells, float* __restrict__ d_projected, int texts,
    int words) {
    extern __shared__ float4 memory[];
    float4* weights = memory;
    float4* deltas = memory + HELD * H;
    const int unit = threadIdx.x, direction = blockIdx.y, first = blockIdx.x * ROWS;
    recurrent += (blockIdx.z * 2 + direction) * H * H + unit;
#pragma unroll 16
    for (int k = 0; k < HELD; k++) weights[k * H + unit] = recurrent[k * H];
    float4 own[H - HELD + 1];
#pragma unroll
    for (int k = HELD; k < H; k++) own[k - HELD] = recurrent[k * H];
    int text[ROWS], length[ROWS];
    float d_cell[ROWS], d_state[ROWS], entering[ROWS], before[ROWS];
    float4 gate[ROWS];
    int longest = 1;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        text[r] = text_of(first + r, texts);
        length[r] = lengths[text[r]];
        longest = max(longest, length[r]);
        d_cell[r] = d_state[r] = 0.0f;
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        for (int step = longest; step < words && first + r < texts; step++)
            write_gates(d_projected, index_of(text[r], step, words, length[r], direction), make_float4(0, 0, 0, 0));
        const int from = index_of(text[r], longest - 1, words, length[r], direction);
        gate[r] = gates[from];
        before[r] = cells[from];
        entering[r] = d_hidden[from];
    }
    __syncthreads();
    for (int step = longest - 1; step >= 0; step--) {
        float4* now = deltas + step % 2 * ROWS * H;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float i = gate[r].x, f = gate[r].y, g = gate[r].z, o = gate[r].w;
            const float bent = tanhf(f * before[r] + i * g);
            const float d_h = step < length[r] ? d_state[r] + entering[r] : 0.0f;
            const float d_c = d_cell[r] + d_h * o * (1.0f - bent * bent);
            const float4 delta = make_float4(
                d_c * g * i * (1.0f - i), d_c * before[r] * f * (1.0f - f), d_c * i * (1.0f - g * g),
                d_h * bent * o * (1.0f - o));
            d_cell[r] = d_c * f;
            now[r * H + unit] = delta;
            if (first + r < texts)
                write_gates(d_projected, index_of(text[r], step, words, length[r], direction), delta);
            // What the next step reads arrives while the products are computed.
            if (step > 0) {
                const int from = index_of(text[r], step - 1, words, length[r], direction);
                gate[r] = gates[from];
                before[r] = cells[from];
                entering[r] = d_hidden[from];
            }
        }
        __syncthreads();
        if (step == 0) break;
        float4 sums[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) sums[r] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 2
        for (int k = 0; k < HELD; k++) {
            const float4 w = weights[k * H + unit];
#pragma unroll
            for (int r = 0; r < ROWS; r++) add_products(sums[r], now[r * H + k], w);
        }
#pragma unroll
        for (int k = HELD; k < H; k++) {
            const float4 w = own[k - HELD];
#pragma unroll
            for (int r = 0; r < ROWS; r++) add_products(sums[r], now[r * H + k], w);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) d_state[r] = (sums[r].x + sums[r].y) + (sums[r].z + sums[r].w);
    }
}
"""

# Units whose recurrent weights fit into a thread's registers.
OWN = 32
# Bytes of the four gates of a unit.
GATES = 16


class Layout(NamedTuple):
    """The texts that a block reads, the number of units whose weights lie in shared memory, and the bytes of shared
    memory for each pass."""

    rows: int
    held: int
    forward: int
    backward: int


def layout(units: int, available: int) -> Layout | None:
    """Where the weights of a layer lie on a chip that has so many bytes of shared memory for a block; None if they do
    not fit, or if the units are no whole warps."""
    # With more texts, each weight that is read serves more; with fewer, more processors share a batch, and a word is
    # sooner done. With 32 and 128 units fewer than eight were faster (measured, see bench/RESULTS.md).
    rows = 4 if units > 32 else 2
    # Registers are nearest; a block has some weights in shared memory.
    held = max(units - OWN, 4)
    # Two sets of what the units of a block send each other: states, or the gradients of gates.
    sent = 2 * rows * units
    found = Layout(rows, held, held * units * GATES + sent * 4, held * units * GATES + sent * GATES)
    return None if units % 32 or found.backward > available else found


class Kernels(NamedTuple):
    """Both passes for layers of one size."""

    passes: dict[str, Any]
    layout: Layout

    def run(self, name: str, models: int, texts: int, units: int, *arguments: Any) -> None:
        """One pass over so many texts of each model, in both directions."""
        bytes_ = self.layout.forward if name == "lstm_forward" else self.layout.backward
        blocks = -(-texts // self.layout.rows)
        self.passes[name]((blocks, 2, models), (units, 1, 1), list(arguments), bytes_)


@cache
def kernels(units: int) -> Kernels | None:
    """The kernels for layers of so many units on the current GPU; None if it cannot run them."""
    available = getattr(torch.cuda.get_device_properties(), "shared_memory_per_block_optin", 0)
    found = layout(units, available)
    if found is None:
        return None
    defined = {"H": units, "HELD": found.held, "ROWS": found.rows}
    shared = {"lstm_forward": found.forward, "lstm_backward": found.backward}
    passes = load_kernels(SOURCE, list(shared), defined, "the trainings of LSTMs", shared)
    return Kernels(passes, found) if passes else None
