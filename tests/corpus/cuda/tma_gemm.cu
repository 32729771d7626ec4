// nvcc: -arch=sm_90a; -arch=sm_90a -lineinfo
// out = a @ b.T of bfloat16: a producer warp loads by TMA, a warpgroup multiplies by wgmma, one thread stores by TMA.
#include <cstdint>

constexpr int TILE = 64, STAGES = 3, STAGE_BYTES = TILE * TILE * 2, MATH = 128;

struct alignas(64) Map {
    uint64_t opaque[16];
};

struct Problem {
    Map a, b, out;
    unsigned k;
};

__device__ uint32_t shared_address(const void *p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void wait(uint32_t bar, uint32_t parity) {
    asm volatile("{ .reg .pred done; AGAIN%=: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra AGAIN%=; }"
                 :: "r"(bar), "r"(parity) : "memory");
}

__device__ void load(uint32_t to, const Map *map, uint32_t bar, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                 :: "r"(to), "l"(map), "r"(bar), "r"(x), "r"(y) : "memory");
}

__device__ uint64_t descriptor(uint32_t address) {
    return (address & 0x3FFFF) >> 4 | uint64_t(1) << 16 | uint64_t(1024 >> 4) << 32 | uint64_t(1) << 62;
}

#define FOUR(x, i) x(i), x(i + 1), x(i + 2), x(i + 3)
#define ALL(x) FOUR(x, 0), FOUR(x, 4), FOUR(x, 8), FOUR(x, 12), FOUR(x, 16), FOUR(x, 20), FOUR(x, 24), FOUR(x, 28)
#define REGISTER(i) "+f"(d[i])

__device__ void multiply(float (&d)[32], uint64_t a, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
                 "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "%32, %33, 1, 1, 1, 0, 0;"
                 : ALL(REGISTER) : "l"(a), "l"(b));
}

extern "C" __global__ void __launch_bounds__(MATH + 32, 1) tma_gemm(const __grid_constant__ Problem p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    __shared__ alignas(8) uint64_t full[STAGES], empty[STAGES];
    const int row = blockIdx.y * TILE, column = blockIdx.x * TILE, steps = p.k / TILE;
    const bool is_producer = threadIdx.x >= MATH;
    if (threadIdx.x == MATH) {
        for (int s = 0; s < STAGES; ++s) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared_address(&full[s])));
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared_address(&empty[s])));
        }
        asm volatile("fence.proxy.async;" ::: "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (is_producer) {
        if (threadIdx.x == MATH) {
            for (int n = 0; n < steps; ++n) {
                const int s = n % STAGES;
                const uint32_t bar = shared_address(&full[s]), to = shared_address(memory) + s * 2 * STAGE_BYTES;
                wait(shared_address(&empty[s]), (n / STAGES & 1) ^ 1);
                load(to, &p.a, bar, n * TILE, row);
                load(to + STAGE_BYTES, &p.b, bar, n * TILE, column);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(2 * STAGE_BYTES));
            }
        }
        return;
    }
    float d[32] = {};
    for (int n = 0; n < steps; ++n) {
        const int s = n % STAGES;
        const uint32_t a = shared_address(memory) + s * 2 * STAGE_BYTES;
        wait(shared_address(&full[s]), n / STAGES & 1);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int i = 0; i < TILE / 16; ++i) multiply(d, descriptor(a + 32 * i), descriptor(a + STAGE_BYTES + 32 * i));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" : ALL(REGISTER) :: "memory");
        if (threadIdx.x == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(shared_address(&empty[s])));
    }
    float *tile = reinterpret_cast<float *>(memory + STAGES * 2 * STAGE_BYTES);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = 0; i < 32; ++i) {
        const int y = warp * 16 + lane / 4 + i % 4 / 2 * 8, x = i / 4 * 8 + lane % 4 * 2 + i % 2;
        tile[y * TILE + x] = d[i];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
                     :: "l"(&p.out), "r"(shared_address(tile)), "r"(column), "r"(row) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
}
