// nvcc: -arch=sm_80; -arch=sm_90; -arch=sm_100a
// fp8 conversions both ways (in software on sm_80, one instruction on sm_90), integer conversions with saturation.
#include <cuda_fp8.h>

__global__ void narrow(const float *x, __nv_fp8_e4m3 *a, __nv_fp8_e5m2 *b, __nv_fp8x4_e4m3 *c, const float4 *v) {
    int i = threadIdx.x;
    a[i] = __nv_fp8_e4m3(x[i]);
    b[i] = __nv_fp8_e5m2(x[i]);
    c[i] = __nv_fp8x4_e4m3(v[i]);
}

__global__ void widen(const __nv_fp8_e4m3 *a, const __nv_fp8x2_e5m2 *b, float *x, float2 *y) {
    int i = threadIdx.x;
    x[i] = float(a[i]);
    y[i] = float2(b[i]);
}

__global__ void conversions(const float *x, const double *d, int *a, unsigned char *b, long long *c, unsigned short *e) {
    int i = threadIdx.x;
    a[i] = __float2int_rn(x[i]) + __float2int_ru(x[i]) + __double2int_rz(d[i]) + (int)rintf(x[i]) + (int)floorf(x[i]);
    b[i] = (unsigned char)x[i] + (signed char)d[i];
    c[i] = __double2ll_rd(d[i]) + __float2ull_rn(x[i]) + (long long)(signed char)a[i];
    e[i] = (unsigned short)ceil(d[i]) + (unsigned short)__float2uint_rd(x[i]);
    ((float *)a)[i + 32] = __ll2float_rz(c[i]) + __uint2float_ru(a[i]) + __double2float_rd(d[i]) + (float)b[i];
    ((double *)c)[i + 32] = __ull2double_rn(c[i]) + (double)x[i] + (double)a[i] + nearbyint(d[i]) + trunc(d[i]);
}
