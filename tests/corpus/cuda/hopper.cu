// nvcc: -arch=sm_90a
// TMA, mbarriers, wgmma, setmaxnreg: a warp-specialised skeleton with the instructions as CUTLASS spells them.
#include <cuda.h>
using u32 = unsigned;
using u64 = unsigned long long;

__device__ void wait(u32 bar, u32 phase) {
    asm volatile(
        "{\n"
        ".reg .pred       P1;\n"
        "LAB_WAIT: \n"
        "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1, 0x989680;\n"
        "@P1 bra.uni DONE;\n"
        "bra.uni     LAB_WAIT;\n"
        "DONE: \n"
        "}" ::"r"(bar), "r"(phase) : "memory");
}
__device__ bool elect() {
    u32 p;
    asm volatile("{.reg .b32 r; .reg .pred P; elect.sync r|P, 0xffffffff; selp.b32 %0, 1, 0, P;}" : "=r"(p));
    return p;
}

__global__ void __launch_bounds__(256, 1) __cluster_dims__(2, 1, 1) skeleton(const __grid_constant__ CUtensorMap map, float *out, int k) {
    extern __shared__ __align__(1024) char smem[];
    u32 base = (u32)__cvta_generic_to_shared(smem), bar = base + 65536;
    if (threadIdx.x == 0) {
        asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(1));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("fence.proxy.async.shared::cta;");
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (elect()) {
            for (int i = 0; i < k; ++i) {
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(16384));
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(base),
                             "l"(&map), "r"(bar), "r"(i * 64), "r"(0), "l"(0x14f0000000000000ull) : "memory");
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(base),
                             "l"(&map), "r"(bar), "r"(i * 64), "r"(64), "h"((short)3) : "memory");
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        float d[4] = {};
        u64 a = 0x4000004000010000ull | base >> 4, b = a + 64;
        for (int i = 0; i < k; ++i) {
            wait(bar, i & 1);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"
                         "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 1;\n}"
                         : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b), "r"(i));
            asm volatile("wgmma.commit_group.sync.aligned;");
            asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(0) : "memory");
        }
        for (int j = 0; j < 4; ++j) out[threadIdx.x * 4 + j] = d[j];
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map), "r"(base), "r"(0), "r"(0) : "memory");
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(0) : "memory");
    }
}
