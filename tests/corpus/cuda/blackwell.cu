// nvcc: -arch=sm_100a
// tcgen05: allocation, copy, MMA, commit, load and wait, and packed float arithmetic.
using u32 = unsigned;
using u64 = unsigned long long;

__global__ void tensor_memory(float *out, u64 a, u64 b, u32 idesc) {
    __shared__ u32 base;
    __shared__ u64 bar;
    u32 where = (u32)__cvta_generic_to_shared(&base), signal = (u32)__cvta_generic_to_shared(&bar);
    if (threadIdx.x < 32) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(where), "r"(128));
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    }
    __syncthreads();
    u32 d = base, r[4];
    if (threadIdx.x == 0) {
        asm volatile("{.reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;}" ::"r"(d), "l"(a), "l"(b), "r"(idesc), "r"(0));
        asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(signal));
    }
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32{%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(d));
    asm volatile("tcgen05.wait::ld.sync.aligned;");
    for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = __uint_as_float(r[i]);
    if (threadIdx.x < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(d), "r"(128));
}

__global__ void packed(u64 *x) {
    int i = threadIdx.x;
    u64 r;
    asm("fma.rn.f32x2 %0, %1, %2, %3;" : "=l"(r) : "l"(x[i]), "l"(x[i + 1]), "l"(x[i + 2]));
    asm("add.rn.ftz.f32x2 %0, %0, %1;" : "+l"(r) : "l"(x[i]));
    x[i] = r;
}
