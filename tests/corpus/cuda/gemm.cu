// nvcc: -arch=sm_80; -arch=sm_80 -lineinfo; -arch=sm_90
// A 64x64x32 tensor-core GEMM with a swizzle, ldmatrix, three cp.async stages and a guarded epilogue.
#include <cuda_fp16.h>
constexpr int TILE = 64, DEPTH = 32, STAGES = 3;

__device__ __forceinline__ unsigned slot(int row, int chunk) { return (row * 4 + (chunk ^ (row >> 1 & 3))) * 16; }

__global__ void __launch_bounds__(128) gemm(const __half *a, const __half *b, float *c, int m, int n, int k, float alpha, float beta) {
    __shared__ __align__(128) char tiles[STAGES][2][TILE * DEPTH * 2];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
    auto fill = [&](int stage, int k0) {
        for (int part = 0; part < 2; ++part) {
            int row = part * 32 + threadIdx.x / 4, chunk = threadIdx.x % 4;
            unsigned to_a = (unsigned)__cvta_generic_to_shared(tiles[stage][0]) + slot(row, chunk);
            unsigned to_b = (unsigned)__cvta_generic_to_shared(tiles[stage][1]) + slot(row, chunk);
            int bytes_a = row0 + row < m && k0 + chunk * 8 < k ? 16 : 0, bytes_b = col0 + row < n && k0 + chunk * 8 < k ? 16 : 0;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to_a), "l"(a + (size_t)(row0 + row) * k + k0 + chunk * 8), "r"(bytes_a));
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to_b), "l"(b + (size_t)(col0 + row) * k + k0 + chunk * 8), "r"(bytes_b));
        }
        asm volatile("cp.async.commit_group;");
    };
    float acc[2][4][4] = {};
    for (int s = 0; s < STAGES - 1; ++s) fill(s, s * DEPTH);
    int steps = (k + DEPTH - 1) / DEPTH, mw = warp / 2 * 32, nw = warp % 2 * 32;
    for (int i = 0; i < steps; ++i) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        fill((i + STAGES - 1) % STAGES, (i + STAGES - 1) * DEPTH);
        unsigned at = (unsigned)__cvta_generic_to_shared(tiles[i % STAGES][0]), bt = (unsigned)__cvta_generic_to_shared(tiles[i % STAGES][1]);
#pragma unroll
        for (int kk = 0; kk < 2; ++kk) {
            unsigned x[2][4], y[4][2];
            for (int r = 0; r < 2; ++r)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(x[r][0]), "=r"(x[r][1]), "=r"(x[r][2]), "=r"(x[r][3]) : "r"(at + slot(mw + r * 16 + lane % 16, kk * 2 + lane / 16)));
            for (int s = 0; s < 4; ++s)
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                             : "=r"(y[s][0]), "=r"(y[s][1]) : "r"(bt + slot(nw + s * 8 + lane % 8, kk * 2 + lane / 8 % 2)));
            for (int r = 0; r < 2; ++r)
                for (int s = 0; s < 4; ++s)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                                 : "+f"(acc[r][s][0]), "+f"(acc[r][s][1]), "+f"(acc[r][s][2]), "+f"(acc[r][s][3])
                                 : "r"(x[r][0]), "r"(x[r][1]), "r"(x[r][2]), "r"(x[r][3]), "r"(y[s][0]), "r"(y[s][1]));
        }
    }
    for (int r = 0; r < 2; ++r)
        for (int s = 0; s < 4; ++s)
            for (int e = 0; e < 4; ++e) {
                int row = row0 + mw + r * 16 + lane / 4 + e / 2 * 8, col = col0 + nw + s * 8 + lane % 4 * 2 + e % 2;
                if (row < m && col < n) c[(size_t)row * n + col] = alpha * acc[r][s][e] + (beta == 0.0f ? 0.0f : beta * c[(size_t)row * n + col]);
            }
}
