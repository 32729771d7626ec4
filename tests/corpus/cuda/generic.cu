// nvcc: -arch=sm_80; -arch=sm_90
// Generic pointers whose space is found at run time, isspacep, cvta both ways, memcpy and memset, unaligned copies.
#include <cstring>
struct Odd { char a; short b; int c; char d[5]; };

__device__ __noinline__ int load(const int *p) { return __isShared(p) ? *p + 1 : __isGlobal(p) ? *p + 2 : __isLocal(p) ? *p + 3 : *p; }

__global__ void spaces(int *x, int which) {
    __shared__ int s[32];
    int local[4] = {x[0], x[1], x[2], x[3]};
    s[threadIdx.x & 31] = x[threadIdx.x];
    __syncthreads();
    const int *p = which == 0 ? x : which == 1 ? s : local + (which & 3);
    x[threadIdx.x] = load(p);
    size_t offset = __cvta_generic_to_global(x) + __cvta_generic_to_shared(s);
    x[threadIdx.x + 1] = (int)offset;
}

__global__ void copies(Odd *a, const Odd *b, char *raw) {
    Odd t = b[threadIdx.x];
    t.d[threadIdx.x % 5] ^= t.a;
    a[threadIdx.x] = t;
    memcpy(raw + 3, b, 41);
    memset(raw + 100, 0x5a, 37);
}
