// nvcc: -arch=sm_75; -arch=sm_80 -lineinfo
// 64-bit division and remainder (slow paths), 128-bit products, carries, bit fields, byte operations, bool arrays.
struct Bits { unsigned a : 5, b : 11, c : 16; signed d : 7; };

__global__ void divide(long long *a, unsigned long long *b, int *c, short *s) {
    int i = threadIdx.x;
    a[i] = a[i] / a[i + 1] + a[i] % (a[i + 2] | 1);
    b[i] = b[i] / b[i + 1] + b[i] % 1000000007ull + __umul64hi(b[i], b[i + 2]);
    c[i] = c[i] / 10 + c[i] % 7 + c[i] / c[i + 1];
    s[i] = s[i] / s[i + 1] + (s[i] >> 3) + abs(s[i]);
}

__global__ void wide(unsigned long long *x, unsigned *y) {
    int i = threadIdx.x;
    unsigned __int128 p = (unsigned __int128)x[i] * x[i + 1] + x[i + 2];
    x[i] = (unsigned long long)(p >> 64) ^ (unsigned long long)p;
    x[i] += __popcll(x[i]) + __clzll(x[i]) + __brevll(x[i]) + __ffsll(x[i]);
    y[i] = __byte_perm(y[i], y[i + 1], 0x3715) + __sad(y[i], 4, 9u) + __umulhi(y[i], 77u) + __funnelshift_r(y[i], y[i + 1], 9);
    y[i] += __vadd4(y[i], y[i + 1]) ^ __vmaxs2(y[i], y[i + 1]) ^ __dp4a(y[i], y[i + 1], 1u) ^ __rhadd(y[i], y[i + 1]);
    x[i + 3] = (x[i] << (y[i] & 63)) | ((long long)x[i] >> (y[i] & 31));
}

__global__ void fields(Bits *b, bool *flags, signed char *c) {
    int i = threadIdx.x;
    b[i].a += b[i].b;
    b[i].d = b[i].c * 3;
    flags[i] = !flags[i + 1] ^ (b[i].a > b[i].d);
    c[i] = c[i] * c[i + 1] - (signed char)(flags[i] ? -7 : 9);
}
