"""The CUDA source of the kernels of an LSTM's recurrence whose products have rounded factors."""

# A product of 16 x 16 and 16 x 8 values of 11 significant bits by the tensor cores, on a GPU. The threads of a warp
# have its factors and sums as PTX defines for `mma.m16n8k16`: thread 4 g + p has the rows g and g + 8 of the first
# factor and of the sum, and the column g of the second factor.
TENSOR_CORES = r"""
// Two values of half precision, the first one in the lower bits.
__device__ inline unsigned packed(float first, float second) {
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}

__device__ inline unsigned short rounded(float value) {
    unsigned short half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
}

__device__ inline void multiply(float (&sums)[4], const uint4& first, unsigned low, unsigned high) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(first.x), "r"(first.y), "r"(first.z), "r"(first.w), "r"(low), "r"(high));
}
"""

ROUNDED_SOURCE = r"""
// The same recurrence with the factors of its products rounded to half precision, which has as many significant bits as
// TF32. All weights lie in registers. A block reads 8 texts of one model in one direction. A warp computes 16 units:
// thread 4 g + p has the units g and g + 8 of the texts 2 p and 2 p + 1, which are four cells, with all gates.

const int TEXTS = 8;

// A thread's part of 16 x 16 values of a matrix, from a row and column on; neighbours in a row are `next` apart.
__device__ inline uint4 tile(const float* matrix, int row, int below, int column, int next) {
    const float* a = matrix + row * below + column * next;
    const float* b = a + 8 * below;
    return make_uint4(
        packed(a[0], a[next]), packed(b[0], b[next]),
        packed(a[8 * next], a[9 * next]), packed(b[8 * next], b[9 * next]));
}

// The input's part of the gates of a thread's four cells at a step, by gate and cell.
__device__ inline void read_entering(
    float (&sums)[4][4], const float* projected, const int (&text)[2], const int (&length)[2], int step, int words,
    int direction, int unit) {
#pragma unroll
    for (int c = 0; c < 4; c++) {
        const int u = unit + c / 2 * 8;
        const int at = index_of(text[c % 2], step, words, length[c % 2], direction, u);
        const float4 gates = entering_of(projected, at, u);
        sums[0][c] = gates.x;
        sums[1][c] = gates.y;
        sums[2][c] = gates.z;
        sums[3][c] = gates.w;
    }
}

// The longest text of a block.
__device__ inline int longest_of(const int* lengths, int first, int texts) {
    int longest = 1;
    for (int n = 0; n < TEXTS; n++) longest = max(longest, lengths[text_of(first + n, texts)]);
    return longest;
}

// recurrent: [models][2][4 H][H]; the rest as in the exact kernels.
extern "C" __global__ void __launch_bounds__(2 * H, 1) lstm_forward(
    const float* __restrict__ projected, const float* __restrict__ recurrent, const int* __restrict__ lengths,
    float* __restrict__ hidden, float4* __restrict__ gates, float* __restrict__ cells, float* __restrict__ previous,
    int texts, int words) {
    // Rows of 4 more, so that the threads of a warp read different banks.
    __shared__ unsigned states[2][TEXTS][H / 2 + 4];
    const int group = threadIdx.x % 32 / 4, pair = threadIdx.x % 4;
    const int direction = blockIdx.y, first = blockIdx.x * TEXTS;
    const int unit = threadIdx.x / 32 * 16 + group;
    recurrent += (blockIdx.z * 2 + direction) * 4 * H * H;
    uint4 weights[4][H / 16];
#pragma unroll
    for (int gate = 0; gate < 4; gate++)
#pragma unroll
        for (int k = 0; k < H / 16; k++)
            weights[gate][k] = tile(recurrent + gate * H * H, unit, H, k * 16 + 2 * pair, 1);
    int text[2], length[2];
#pragma unroll
    for (int n = 0; n < 2; n++) {
        text[n] = text_of(first + 2 * pair + n, texts);
        length[n] = lengths[text[n]];
    }
    const int longest = longest_of(lengths, first, texts);
    float cell[4] = {}, state[4] = {}, later[4][4];
    read_entering(later, projected, text, length, 0, words, direction, unit);
    for (int i = threadIdx.x; i < TEXTS * (H / 2 + 4); i += 2 * H) states[0][i / (H / 2 + 4)][i % (H / 2 + 4)] = 0;
    __syncthreads();
    for (int step = 0; step < longest; step++) {
        float sums[4][4];
#pragma unroll
        for (int c = 0; c < 16; c++) sums[c / 4][c % 4] = later[c / 4][c % 4];
        // What the next step reads arrives while the products are computed.
        if (step + 1 < longest) read_entering(later, projected, text, length, step + 1, words, direction, unit);
        const unsigned* now = states[step % 2][group];
#pragma unroll
        for (int k = 0; k < H / 16; k++) {
            const unsigned low = now[k * 8 + pair], high = now[k * 8 + pair + 4];
#pragma unroll
            for (int gate = 0; gate < 4; gate++) multiply(sums[gate], weights[gate][k], low, high);
        }
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const int u = unit + c / 2 * 8, n = 2 * pair + c % 2;
            const float before = cell[c], state_before = state[c];
            const float4 gate = advance(sums[0][c], sums[1][c], sums[2][c], sums[3][c], cell[c], state[c]);
            reinterpret_cast<unsigned short*>(states[(step + 1) % 2][n])[u] = rounded(state[c]);
            if (first + n < texts) {
                const int to = index_of(text[c % 2], step, words, length[c % 2], direction, u);
                hidden[to] = step < length[c % 2] ? state[c] : 0.0f;
                gates[to] = gate;
                cells[to] = before;
                previous[to] = state_before;
            }
        }
        __syncthreads();
    }
    for (int step = longest; step < words; step++)
#pragma unroll
        for (int c = 0; c < 4; c++)
            if (first + 2 * pair + c % 2 < texts) {
                const int u = unit + c / 2 * 8;
                const int to = index_of(text[c % 2], step, words, length[c % 2], direction, u);
                // The gradient of the weights reads the previous states of padding too.
                hidden[to] = previous[to] = 0.0f;
            }
}

// The power of two that scales a text's gradients, so that the largest gradient of its states is 32 to 64: half
// precision has few small numbers.
__device__ inline float scale_of(float largest) {
    return largest > 0.0f && largest < 1e30f ? exp2f(5.0f - floorf(log2f(largest))) : 1.0f;
}

extern "C" __global__ void __launch_bounds__(2 * H, 1) lstm_backward(
    const float* __restrict__ d_hidden, const float* __restrict__ recurrent, const int* __restrict__ lengths,
    const float4* __restrict__ gates, const float* __restrict__ cells, float* __restrict__ d_projected, int texts,
    int words) {
    __shared__ unsigned deltas[2][TEXTS][2 * H + 4];
    __shared__ float largest[TEXTS][2 * H];
    const int group = threadIdx.x % 32 / 4, pair = threadIdx.x % 4;
    const int direction = blockIdx.y, first = blockIdx.x * TEXTS;
    const int unit = threadIdx.x / 32 * 16 + group;
    recurrent += (blockIdx.z * 2 + direction) * 4 * H * H;
    // Rows are previous units, columns the gates of units.
    uint4 weights[H / 4];
#pragma unroll
    for (int k = 0; k < H / 4; k++) weights[k] = tile(recurrent, unit, 1, k * 16 + 2 * pair, H);
    int text[2], length[2];
#pragma unroll
    for (int n = 0; n < 2; n++) {
        text[n] = text_of(first + 2 * pair + n, texts);
        length[n] = lengths[text[n]];
    }
    const int longest = longest_of(lengths, first, texts);
    for (int n = 0; n < TEXTS; n++) {
        const int one = text_of(first + n, texts), end = lengths[one];
        float most = 0.0f;
        for (int i = threadIdx.x; i < end * H; i += 2 * H)
            most = fmaxf(most, fabsf(d_hidden[index_of(one, i / H, words, end, direction, i % H)]));
        largest[n][threadIdx.x] = most;
    }
    __syncthreads();
    for (int half = H; half > 0; half /= 2) {
        if (threadIdx.x < half)
            for (int n = 0; n < TEXTS; n++)
                largest[n][threadIdx.x] = fmaxf(largest[n][threadIdx.x], largest[n][threadIdx.x + half]);
        __syncthreads();
    }
    float scale[2], d_cell[4], d_state[4], entering[4], before[4];
    float4 gate[4];
#pragma unroll
    for (int n = 0; n < 2; n++) scale[n] = scale_of(largest[2 * pair + n][0]);
#pragma unroll
    for (int c = 0; c < 4; c++) {
        const int u = unit + c / 2 * 8, t = text[c % 2];
        for (int step = longest; step < words && first + 2 * pair + c % 2 < texts; step++)
            write_gates(
                d_projected, index_of(t, step, words, length[c % 2], direction, u), u, make_float4(0, 0, 0, 0));
        d_cell[c] = d_state[c] = 0.0f;
        const int from = index_of(t, longest - 1, words, length[c % 2], direction, u);
        gate[c] = gates[from];
        before[c] = cells[from];
        entering[c] = d_hidden[from];
    }
    for (int step = longest - 1; step >= 0; step--) {
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const int u = unit + c / 2 * 8, n = 2 * pair + c % 2;
            const float d_h = step < length[c % 2] ? d_state[c] + entering[c] : 0.0f;
            const float4 delta = retreat(gate[c], before[c], d_h, d_cell[c]);
            unsigned short* now = reinterpret_cast<unsigned short*>(deltas[step % 2][n]);
            const float values[4] = {delta.x, delta.y, delta.z, delta.w};
#pragma unroll
            for (int q = 0; q < 4; q++)
                now[q * H + u] = rounded(fminf(fmaxf(values[q] * scale[c % 2], -65504.0f), 65504.0f));
            if (first + n < texts)
                write_gates(
                    d_projected, index_of(text[c % 2], step, words, length[c % 2], direction, u), u, delta);
            // What the next step reads arrives while the products are computed.
            if (step > 0) {
                const int from = index_of(text[c % 2], step - 1, words, length[c % 2], direction, u);
                gate[c] = gates[from];
                before[c] = cells[from];
                entering[c] = d_hidden[from];
            }
        }
        __syncthreads();
        if (step == 0) break;
        // Four sums, so that products need not wait for each other.
        float sums[4][4];
#pragma unroll
        for (int s = 0; s < 4; s++) sums[s][0] = sums[s][1] = sums[s][2] = sums[s][3] = 0.0f;
        const unsigned* now = deltas[step % 2][group];
#pragma unroll
        for (int k = 0; k < H / 4; k++) multiply(sums[k % 4], weights[k], now[k * 8 + pair], now[k * 8 + pair + 4]);
#pragma unroll
        for (int c = 0; c < 4; c++)
            d_state[c] = ((sums[0][c] + sums[1][c]) + (sums[2][c] + sums[3][c])) / scale[c % 2];
    }
}
"""
