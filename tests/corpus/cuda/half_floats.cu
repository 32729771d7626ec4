// nvcc: -arch=sm_80; -arch=sm_90; -arch=sm_100a
// f16, f16x2, bf16, bf16x2: arithmetic, comparison, conversion, approximate functions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void halves(const __half *a, const __half *b, __half *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half x = a[i], y = b[i];
    __half r = __hfma(x, y, __hdiv(x, y));
    r = __hadd_sat(r, __hmul(x, __hneg(y)));
    if (__hgt(r, x)) r = __hsub(r, __habs(y));
    c[i] = __hmax(hexp2(r), htanh(hsqrt(hrcp(x))));
    c[i + n] = __ushort2half_rz((unsigned short)__half2int_rd(r)) + __double2half(__half2float(hsin(x)) * 2.0);
}

__global__ void pairs(const __half2 *a, __half2 *b, const float2 *f) {
    int i = threadIdx.x;
    __half2 x = a[i], y = __float22half2_rn(f[i]);
    b[i] = __hfma2_relu(x, y, __hmax2(x, __lowhigh2highlow(y)));
    b[i + 32] = __hcmadd(x, y, __hge2(x, y));
    b[i + 64] = h2exp2(__halves2half2(__low2half(x), __high2half(y)));
}

__global__ void brains(const __nv_bfloat16 *a, __nv_bfloat16 *b, const __nv_bfloat162 *c, __nv_bfloat162 *d) {
    int i = threadIdx.x;
    b[i] = __hfma(a[i], a[i + 1], b[i]) + hexp(a[i]);
    b[i + 32] = __float2bfloat16_rz(__bfloat162float(a[i]) * 3.0f);
    d[i] = __hfma2(c[i], __hneg2(c[i + 1]), __hmin2(d[i], c[i]));
    d[i + 32] = __floats2bfloat162_rn(__low2float(c[i]), __high2float(d[i]));
}
