// nvcc: -arch=sm_75; -arch=sm_80; -arch=sm_100a
// Shuffles of all kinds and types, votes, matches, reductions, active masks, lane masks.
__device__ unsigned lanemask_lt() {
    unsigned mask;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
    return mask;
}

__global__ void shuffles(int *a, float *b, double *c, unsigned long long *d) {
    unsigned all = 0xffffffffu;
    int i = threadIdx.x;
    a[i] = __shfl_sync(all, a[i], 3) + __shfl_up_sync(all, a[i], 1) + __shfl_down_sync(all, a[i], 2, 16);
    b[i] = __shfl_xor_sync(all, b[i], 7, 8);
    for (int o = 16; o; o >>= 1) c[i] += __shfl_down_sync(all, c[i], o);
    d[i] ^= __shfl_sync(all, d[i], a[i] & 31);
}

__global__ void votes(int *a, unsigned *out, unsigned long long *keys) {
    unsigned all = 0xffffffffu, active = __activemask();
    int i = threadIdx.x, predicate;
    unsigned r = __ballot_sync(all, a[i] > 0) + __any_sync(all, a[i] == 1) + 2 * __all_sync(all, a[i] < 100) + active;
    if (a[i] & 1) r += __popc(__ballot_sync(__activemask(), a[i] > 3) & lanemask_lt());
    r += __match_any_sync(all, a[i]) ^ __match_all_sync(all, keys[i], &predicate);
    __syncwarp(r | 1);
    out[i] = r + predicate;
}

#if __CUDA_ARCH__ >= 800
__global__ void reductions(int *a, unsigned *b) {
    unsigned all = 0xffffffffu;
    int i = threadIdx.x;
    a[i] = __reduce_add_sync(all, a[i]) + __reduce_min_sync(all, a[i]) + __reduce_max_sync(all, a[i]);
    b[i] = __reduce_and_sync(all, b[i]) | __reduce_or_sync(all, b[i]) ^ __reduce_xor_sync(all, b[i]);
}
#endif
