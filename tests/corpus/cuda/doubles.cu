// nvcc: -arch=sm_80; -arch=sm_90 -fmad=false
// Double arithmetic with every rounding, division, square root, classification, long polynomials.
__global__ void roundings(const double *x, double *y) {
    int i = threadIdx.x;
    double a = x[i], b = x[i + 1];
    y[i] = __dadd_rn(a, b) + __dmul_rz(a, b) + __fma_ru(a, b, a) + __ddiv_rd(a, b) + __dsqrt_rn(a) + __drcp_rz(b) + __dsub_ru(a, b);
    y[i] += fmin(a, b) * fmax(a, b) - fabs(a) + copysign(a, b) + a / b + sqrt(b);
    y[i] += isnan(a) + 2 * isinf(b) + 4 * signbit(a) + 8 * isfinite(b) + fdim(a, b) + (a <= b) + (a != b) + !(a < b);
    y[i] += __hiloint2double(__double2loint(a), __double2hiint(b)) + __longlong_as_double(__double_as_longlong(a) ^ 1);
}

__global__ void horner(const double *c, double *y, double x) {
    double r = 0;
#pragma unroll 16
    for (int k = 0; k < 64; ++k) r = r * x + c[k];
    y[threadIdx.x] = r * 1e-300 + 0x1.8p-1040 + 3.141592653589793;
}
