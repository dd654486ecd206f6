"""The CUDA source of the exact kernels of an LSTM's recurrence."""

# What kernels of both kinds need. Gates are ordered i, f, g, o, as in PyTorch. The second direction reads each text
# from its last word to its first. A block ends after its longest text; states of padding are 0.
SHARED_SOURCE = r"""
__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// A unit's gates from their sums; its cell and state become those after the word.
__device__ inline float4 advance(float i, float f, float g, float o, float& cell, float& state) {
    const float4 gates = make_float4(sigmoid(i), sigmoid(f), tanhf(g), sigmoid(o));
    cell = gates.y * cell + gates.x * gates.z;
    state = gates.w * tanhf(cell);
    return gates;
}

// The gradient of the sums of a unit's gates from that of its state; that of its cell becomes the one before the word.
__device__ inline float4 retreat(const float4& gates, float cell_before, float d_state, float& d_cell) {
    const float i = gates.x, f = gates.y, g = gates.z, o = gates.w, bent = tanhf(f * cell_before + i * g);
    const float d_c = d_cell + d_state * o * (1.0f - bent * bent);
    d_cell = d_c * f;
    return make_float4(
        d_c * g * i * (1.0f - i), d_c * cell_before * f * (1.0f - f), d_c * i * (1.0f - g * g),
        d_state * bent * o * (1.0f - o));
}

// The text of a row of a block; the last one again, if there are fewer.
__device__ inline int text_of(int row, int texts) {
    return blockIdx.z * texts + (row < texts ? row : texts - 1);
}

// The index of a unit's value in [models][texts][words][2][H], at a step of the direction.
__device__ inline int index_of(int text, int step, int words, int length, int direction, int unit) {
    int word = direction && step < length ? length - 1 - step : step;
    return ((text * words + word) * 2 + direction) * H + unit;
}

// Where a unit's gates are in `projected` and its gradient: four gates of H values for each value of a result.
__device__ inline int gates_of(int index, int unit) { return 4 * (index - unit) + unit; }

// The input's part of a unit's gates.
__device__ inline float4 entering_of(const float* projected, int index, int unit) {
    const float* from = projected + gates_of(index, unit);
    return make_float4(from[0], from[H], from[2 * H], from[3 * H]);
}

// The gradient of a unit's gates.
__device__ inline void write_gates(float* d_projected, int index, int unit, const float4& values) {
    float* to = d_projected + gates_of(index, unit);
    to[0] = values.x;
    to[H] = values.y;
    to[2 * H] = values.z;
    to[3 * H] = values.w;
}
"""

EXACT_SOURCE = r"""
// The recurrence of LSTMs in both directions: a block reads ROWS texts of one model in one direction, word by word, and
// a thread computes one unit. The recurrent weights stay on the chip: those of the first HELD units in shared memory,
// those of the others in registers.

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

// Keep a thread's weights on the chip: those of the first HELD units in shared memory, the others in registers.
__device__ inline void keep_weights(float4* shared, float4 (&own)[H - HELD + 1], const float4* recurrent) {
#pragma unroll 16
    for (int k = 0; k < HELD; k++) shared[k * H + threadIdx.x] = recurrent[k * H + threadIdx.x];
#pragma unroll
    for (int k = HELD; k < H; k++) own[k - HELD] = recurrent[k * H + threadIdx.x];
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
    recurrent += (blockIdx.z * 2 + direction) * H * H;
    float4 own[H - HELD + 1];
    keep_weights(weights, own, recurrent);
    int text[ROWS], length[ROWS];
    float cell[ROWS], state[ROWS];
    float4 later[ROWS];
    int longest = 1;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        text[r] = text_of(first + r, texts);
        length[r] = lengths[text[r]];
        longest = max(longest, length[r]);
        cell[r] = state[r] = states[r * H + unit] = 0.0f;
        later[r] = entering_of(projected, index_of(text[r], 0, words, length[r], direction, unit), unit);
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
            const int after = index_of(text[r], step + 1, words, length[r], direction, unit);
            if (step + 1 < longest) later[r] = entering_of(projected, after, unit);
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
            const float before = cell[r], state_before = state[r];
            const float4 gate = advance(
                sums[r].x + entering[r].x, sums[r].y + entering[r].y, sums[r].z + entering[r].z,
                sums[r].w + entering[r].w, cell[r], state[r]);
            next[r * H + unit] = state[r];
            if (first + r < texts) {
                const int to = index_of(text[r], step, words, length[r], direction, unit);
                hidden[to] = step < length[r] ? state[r] : 0.0f;
                gates[to] = gate;
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
                const int to = index_of(text[r], step, words, length[r], direction, unit);
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
    recurrent += (blockIdx.z * 2 + direction) * H * H;
    float4 own[H - HELD + 1];
    keep_weights(weights, own, recurrent);
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
            write_gates(
                d_projected, index_of(text[r], step, words, length[r], direction, unit), unit, make_float4(0, 0, 0, 0));
        const int from = index_of(text[r], longest - 1, words, length[r], direction, unit);
        gate[r] = gates[from];
        before[r] = cells[from];
        entering[r] = d_hidden[from];
    }
    __syncthreads();
    for (int step = longest - 1; step >= 0; step--) {
        float4* now = deltas + step % 2 * ROWS * H;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float d_h = step < length[r] ? d_state[r] + entering[r] : 0.0f;
            const float4 delta = retreat(gate[r], before[r], d_h, d_cell[r]);
            now[r * H + unit] = delta;
            if (first + r < texts)
                write_gates(d_projected, index_of(text[r], step, words, length[r], direction, unit), unit, delta);
            // What the next step reads arrives while the products are computed.
            if (step > 0) {
                const int from = index_of(text[r], step - 1, words, length[r], direction, unit);
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
