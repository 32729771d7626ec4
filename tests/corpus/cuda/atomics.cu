// nvcc: -arch=sm_75; -arch=sm_90
// Every atomic function, in global and in shared memory, with and without a used result, and its scopes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void integers(int *a, unsigned *b, unsigned long long *c, long long *d) {
    __shared__ int s[32];
    __shared__ unsigned long long t[32];
    int i = threadIdx.x;
    s[i & 31] = 0;
    t[i & 31] = 0;
    __syncthreads();
    atomicAdd(s + (i & 31), a[i]);
    t[i & 31] += atomicMax(t + ((i + 1) & 31), c[i]);
    a[i] = atomicExch(a + 1, 3) + atomicMin(a + 2, i) + atomicAnd(a + 3, i) + atomicOr(a + 4, i) + atomicXor(a + 5, i);
    b[i] = atomicInc(b, 31u) + atomicDec(b + 1, 7u) + atomicCAS(b + 2, 1u, 2u) + atomicSub(b + 3, 5u) + atomicMax(b + 4, 9u);
    c[i] = atomicAdd(c, 1ull) + atomicCAS(c + 1, 3ull, 4ull) + atomicExch(c + 2, 5ull) + atomicXor(c + 3, 6ull);
    d[i] = atomicMin(d, -1ll) + atomicMax(d + 1, 2ll);
    atomicAdd_block(a + 6, 1);
    atomicAdd_system(a + 7, s[i & 31]);
    atomicMin_block(b + 5, 1u);
    atomicOr_system(c + 4, t[i & 31]);
}

__global__ void floats(float *a, double *b, __half *h, __half2 *h2, __nv_bfloat16 *w, __nv_bfloat162 *w2) {
    int i = threadIdx.x;
    a[i] = atomicAdd(a, 1.0f) + atomicExch(a + 1, 2.0f);
    b[i] = atomicAdd(b, 1.0);
    atomicAdd(a + 2, 0.5f);
    h[i] = atomicAdd(h, __float2half(1.0f));
    h2[i] = atomicAdd(h2, __float2half2_rn(2.0f));
    w[i] = atomicAdd(w, __float2bfloat16(1.0f));
    w2[i] = atomicAdd(w2, __float2bfloat162_rn(2.0f));
}

// A float maximum by compare-and-swap, the loop everyone writes.
__global__ void float_max(const float *x, float *best, unsigned short *tag) {
    float value = x[threadIdx.x];
    int *bits = reinterpret_cast<int *>(best), old = *bits, seen;
    do {
        seen = old;
        old = atomicCAS(bits, seen, __float_as_int(fmaxf(value, __int_as_float(seen))));
    } while (old != seen);
    atomicCAS(tag, (unsigned short)0, (unsigned short)threadIdx.x);
}
