// nvcc: -arch=sm_90
// mma.sync of the everyday shapes and types, fed by ldmatrix and stored by stmatrix.
using u32 = unsigned;

__global__ void shapes(const u32 *in, float *f, double *d, int *s, u32 *h) {
    int i = threadIdx.x;
    u32 a[4] = {in[i], in[i + 32], in[i + 64], in[i + 96]}, b[2] = {in[i + 128], in[i + 160]};
    float c[4] = {f[i], f[i + 32], f[i + 64], f[i + 96]};
    int n[4] = {s[i], s[i + 32], s[i + 64], s[i + 96]};
    u32 half[2] = {h[i], h[i + 32]};
    double x[4] = {d[i], d[i + 32], d[i + 64], d[i + 96]};
#define FLOATS(shape, types)                                                                       \
    asm volatile("mma.sync.aligned." shape ".row.col." types " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
    FLOATS("m16n8k16", "f32.f16.f16.f32");
    FLOATS("m16n8k16", "f32.bf16.bf16.f32");
    FLOATS("m16n8k8", "f32.tf32.tf32.f32");
    FLOATS("m16n8k32", "f32.e4m3.e5m2.f32");
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
                 : "+r"(half[0]), "+r"(half[1]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(n[0]), "+r"(n[1]), "+r"(n[2]), "+r"(n[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+r"(n[0]), "+r"(n[1]) : "r"(a[0]), "r"(b[0]));
    asm volatile("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(n[0]), "+r"(n[1]), "+r"(n[2]), "+r"(n[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(n[0]), "+r"(n[1]), "+r"(n[2]), "+r"(n[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(x[0]), "+d"(x[1]) : "d"(x[2]), "d"(x[3]));
    asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(a[0]), "r"(a[1]), "r"(in[i + 192]));
    for (int k = 0; k < 4; ++k) { f[i + 32 * k] = c[k]; s[i + 32 * k] = n[k]; d[i + 32 * k] = x[k]; }
    h[i] = half[0];
    h[i + 32] = half[1];
}

__global__ void matrices(u32 *out) {
    __shared__ __align__(128) u32 tile[1024];
    u32 r[4], address = (u32)__cvta_generic_to_shared(tile) + threadIdx.x * 16;
    tile[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
    asm volatile("ldmatrix.sync.aligned.x2.m8n8.trans.shared.b16 {%0, %1}, [%2+512];" : "=r"(r[0]), "=r"(r[1]) : "r"(address));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared::cta.b16 {%0}, [%1];" : "=r"(r[2]) : "r"(address));
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(r[1]), "r"(r[3]));
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r[0]) : "r"(r[2]));
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x] + r[0];
}
