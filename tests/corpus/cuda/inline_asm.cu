// nvcc: -arch=sm_80; -arch=sm_90
// Inline assembly as kernels carry it: nested scopes, predicates, local registers, labels, vectors, comments.
__device__ __forceinline__ bool wait_parity(unsigned address, unsigned parity) {
    unsigned done;
    asm volatile(
        "{\n\t.reg .pred P;\n\t"
        "mbarrier.test_wait.parity.shared.b64 P, [%1], %2; // one try\n\t"
        "selp.u32 %0, 1, 0, P;\n\t}"
        : "=r"(done) : "r"(address), "r"(parity) : "memory");
    return done;
}
__device__ __forceinline__ void load_if(uint4 &v, const void *p, bool guard) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %5, 0;\n"
        "  mov.b32 %0, %6; mov.b32 %1, %6; mov.b32 %2, %6; mov.b32 %3, %6;\n"
        "  @p ld.global.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4]; }"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p), "r"((int)guard), "r"(0));
}
__device__ __forceinline__ unsigned leading(unsigned x) {
    unsigned r;
    asm("{ .reg .u32 t, u<3>; /* a nested scope in a scope */ bfind.u32 t, %1; { .reg .pred q; setp.eq.u32 q, t, 0xffffffff; @!q add.u32 t, t, 1; @q mov.u32 t, 0; }"
        " mov.u32 u1, t; mov.u32 %0, u1; }" : "=r"(r) : "r"(x));
    return r;
}

__global__ void scopes(uint4 *v, unsigned *x, unsigned long long *clocks) {
    __shared__ unsigned long long bar;
    int i = threadIdx.x;
    unsigned address = (unsigned)__cvta_generic_to_shared(&bar);
    if (i == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address), "r"(blockDim.x));
    __syncthreads();
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(address) : "memory");
    while (!wait_parity(address, 0)) {}
    uint4 t;
    load_if(t, v + i, x[i] & 1);
    v[i] = t;
    x[i] = leading(x[i]);
    unsigned long long now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now));
    clocks[i] = now;
    asm volatile("prefetch.global.L2 [%0+128];" ::"l"(x + i));
    asm volatile("bar.sync 1, 64;");
    asm volatile("barrier.sync.aligned %0, %1;" ::"r"(2), "r"(64));
    asm volatile("bar.arrive %0, 128;" ::"n"(3));
}

__global__ void bit_tricks(unsigned *x, unsigned long long *y) {
    int i = threadIdx.x;
    unsigned a = x[i], r;
    asm("lop3.b32 %0, %1, %2, 0x0f0f0f0f, 0x6a;" : "=r"(r) : "r"(a), "r"(a >> 3));
    asm("prmt.b32 %0, %0, %1, 0x5410;" : "+r"(r) : "r"(a));
    asm("bfi.b32 %0, %1, %0, 4, 9;" : "+r"(r) : "r"(a));
    asm("shf.l.wrap.b32 %0, %0, %1, 7;" : "+r"(r) : "r"(a));
    asm("vabsdiff4.u32.u32.u32.add %0, %0, %1, %0;" : "+r"(r) : "r"(a));
    asm("dp4a.u32.s32 %0, %1, %1, %0;" : "+r"(r) : "r"(a));
    asm("mad.lo.cc.u32 %0, %0, %1, %1; madc.hi.u32 %0, %0, %1, 0;" : "+r"(r) : "r"(a));
    asm("{ add.cc.u32 %0, %0, %1; addc.u32 %0, %0, 0; }" : "+r"(r) : "r"(a));
    asm("{ .reg .b32 lo, hi; mov.b64 {lo, hi}, %0; xor.b32 lo, lo, hi; mov.b64 %0, {hi, lo}; }" : "+l"(y[i]));
    x[i] = r;
}
