// nvcc: -arch=sm_80; -arch=sm_80 -rdc=true; -arch=sm_100a -rdc=true
// Device functions that are kept as calls: struct arguments and results, many parameters, pointers.
struct Pair { float first; int second; };
struct Wide { double values[6]; char tag; };

__device__ __noinline__ float square(float x) { return x * x; }
__device__ __noinline__ Pair swap_sign(Pair p, bool flip) {
    if (flip) { p.first = -p.first; p.second = ~p.second; }
    return p;
}
__device__ __noinline__ Wide shift(Wide w, double by, unsigned char tag) {
    for (int i = 0; i < 6; ++i) w.values[i] += by * i;
    w.tag = tag;
    return w;
}
__device__ __noinline__ void store(float *p, float x, short offset) { p[offset] = x; }
__device__ __noinline__ long long sum9(int a, char b, short c, long long d, float e, double f, unsigned g, bool h, int i) {
    return a + b + c + d + (long long)e + (long long)f + g + h + i;
}

__global__ void calls(float *x, int *n, double *d, long long *s) {
    int i = threadIdx.x;
    Pair p = swap_sign({square(x[i]), n[i]}, i & 1);
    store(x, p.first, (short)i);
    n[i] = p.second;
    Wide w;
    for (int k = 0; k < 6; ++k) w.values[k] = d[k];
    w = shift(w, 0.5, (unsigned char)i);
    for (int k = 0; k < 6; ++k) d[k] = w.values[k] + w.tag;
    s[i] = sum9(i, (char)i, (short)i, s[i], x[i], d[0], 7u, i > 3, -1);
}
