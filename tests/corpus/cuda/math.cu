// nvcc: -arch=sm_80; -arch=sm_80 -use_fast_math; -arch=sm_90 -ftz=true -prec-div=false
// Math functions in float and double: their slow paths use local tables, calls and 64-bit integers.
__global__ void singles(const float *x, float *y) {
    int i = threadIdx.x;
    float a = x[i], b = x[i + 1], s, c;
    sincosf(a, &s, &c);
    y[i] = s + c + tanf(b) + expf(a) + logf(b) + powf(a, b) + exp2f(a) + log10f(b) + rsqrtf(a) + sqrtf(b) + a / b;
    y[i] += fmodf(a, b) + remainderf(a, b) + atan2f(a, b) + tanhf(a) + erff(a) + lgammaf(b) + cbrtf(a) + ldexpf(a, i) + hypotf(a, b);
    y[i] += __sinf(a) + __expf(b) + __fdividef(a, b) + __saturatef(a) + __frcp_rn(b) + __fsqrt_rz(a) + __fmaf_rd(a, b, a);
    y[i] += fminf(a, fmaxf(b, 0.5f)) + roundf(a) + truncf(b) + normcdff(a) + j0f(b);
}

__global__ void doubles(const double *x, double *y) {
    int i = threadIdx.x;
    double a = x[i], b = x[i + 1];
    y[i] = sin(a) + cospi(b) + exp(a) + log(b) + pow(a, b) + tgamma(a) + erfc(b) + fmod(a, b) + atan(a) + cbrt(b) + log1p(a);
    int e;
    y[i] += frexp(a, &e) + e + rint(b) + llrint(a) + nextafter(a, b) + sinh(b);
}
