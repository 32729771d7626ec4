// nvcc: -arch=sm_80; -arch=sm_90
// Softmax, layer norm, rotary embedding and an online-softmax attention row, as inference code has them.
#include <cuda_bf16.h>
__device__ float warp_sum(float x) { for (int o = 16; o; o >>= 1) x += __shfl_xor_sync(~0u, x, o); return x; }
__device__ float warp_max(float x) { for (int o = 16; o; o >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, o)); return x; }

template <int WARPS>
__global__ void softmax(const __nv_bfloat16 *x, __nv_bfloat16 *y, int columns) {
    __shared__ float partial[2][WARPS];
    const __nv_bfloat16 *row = x + (size_t)blockIdx.x * columns;
    float best = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < columns; i += WARPS * 32) best = fmaxf(best, __bfloat162float(row[i]));
    best = warp_max(best);
    if (threadIdx.x % 32 == 0) partial[0][threadIdx.x / 32] = best;
    __syncthreads();
    for (int w = 0; w < WARPS; ++w) best = fmaxf(best, partial[0][w]);
    for (int i = threadIdx.x; i < columns; i += WARPS * 32) sum += __expf(__bfloat162float(row[i]) - best);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) partial[1][threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int w = 0; w < WARPS; ++w) sum += partial[1][w];
    for (int i = threadIdx.x; i < columns; i += WARPS * 32) y[(size_t)blockIdx.x * columns + i] = __float2bfloat16(__expf(__bfloat162float(row[i]) - best) / sum);
}
template __global__ void softmax<4>(const __nv_bfloat16 *, __nv_bfloat16 *, int);

__global__ void layer_norm(const float4 *x, const float4 *weight, float4 *y, int quads, float epsilon) {
    float sum = 0, squares = 0;
    const float4 *row = x + (size_t)blockIdx.x * quads;
    for (int i = threadIdx.x; i < quads; i += 32) {
        float4 v = row[i];
        sum += v.x + v.y + v.z + v.w;
        squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    float mean = warp_sum(sum) / (4 * quads), scale = rsqrtf(warp_sum(squares) / (4 * quads) - mean * mean + epsilon);
    for (int i = threadIdx.x; i < quads; i += 32) {
        float4 v = row[i], w = weight[i];
        y[(size_t)blockIdx.x * quads + i] = make_float4((v.x - mean) * scale * w.x, (v.y - mean) * scale * w.y, (v.z - mean) * scale * w.z, (v.w - mean) * scale * w.w);
    }
}

__global__ void rotary(__nv_bfloat162 *q, const int *positions, int heads, float base) {
    int i = threadIdx.x, head = blockIdx.y;
    float angle = positions[blockIdx.x] * powf(base, -2.0f * i / (2 * blockDim.x)), s, c;
    sincosf(angle, &s, &c);
    __nv_bfloat162 &v = q[((size_t)blockIdx.x * heads + head) * blockDim.x + i];
    float2 f = __bfloat1622float2(v);
    v = __floats2bfloat162_rn(f.x * c - f.y * s, f.x * s + f.y * c);
}

__global__ void decode(const float *q, const float *k, const float *v, float *out, int length) {
    float best = -INFINITY, total = 0, acc[2] = {}, query[2] = {q[threadIdx.x], q[threadIdx.x + 32]};
    for (int t = 0; t < length; ++t) {
        float score = warp_sum(query[0] * k[t * 64 + threadIdx.x] + query[1] * k[t * 64 + threadIdx.x + 32]);
        float next = fmaxf(best, score), decay = exp2f(best - next), p = exp2f(score - next);
        total = total * decay + p;
        for (int j = 0; j < 2; ++j) acc[j] = acc[j] * decay + p * v[t * 64 + threadIdx.x + 32 * j];
        best = next;
    }
    for (int j = 0; j < 2; ++j) out[threadIdx.x + 32 * j] = acc[j] / total;
}
