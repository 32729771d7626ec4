// nvcc: -arch=sm_80; -arch=sm_80 -G; -arch=sm_120
// Arrays indexed at run time live in .local; alloca; addresses that escape.
__device__ __noinline__ void sort3(int *v) {
    if (v[0] > v[1]) { int t = v[0]; v[0] = v[1]; v[1] = t; }
    if (v[1] > v[2]) { int t = v[1]; v[1] = v[2]; v[2] = t; }
    if (v[0] > v[1]) { int t = v[0]; v[0] = v[1]; v[1] = t; }
}

__global__ void histogram(const unsigned char *x, unsigned *out, int n) {
    unsigned counts[64] = {};
    for (int i = threadIdx.x; i < n; i += blockDim.x) ++counts[x[i] & 63];
    for (int i = 0; i < 64; ++i) atomicAdd(out + i, counts[i]);
}

__global__ void medians(const int *x, int *out, int k) {
    int v[3] = {x[3 * threadIdx.x], x[3 * threadIdx.x + 1], x[3 * threadIdx.x + 2]};
    sort3(v);
    out[threadIdx.x] = v[k % 3];
}

__global__ void frames(const short *x, short *out, int n) {
    short *frame = static_cast<short *>(__builtin_alloca(n * sizeof(short)));
    for (int i = 0; i < n; ++i) frame[i] = x[i * blockDim.x + threadIdx.x];
    short best = frame[0];
    for (int i = n - 1; i > 0; --i) best = best < frame[i ^ 1] ? frame[i ^ 1] : best;
    out[threadIdx.x] = best;
}
