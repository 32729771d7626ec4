// nvcc: -arch=sm_80; -arch=sm_100a
// Loads and stores with cache operators, volatile, __ldg, __restrict__, vectors of all widths, launch bounds.
__global__ void __launch_bounds__(256, 2) vectors(const float4 *__restrict__ a, const int2 *__restrict__ b, const uchar4 *__restrict__ c,
                                                  const ushort2 *__restrict__ d, const double2 *__restrict__ e, float4 *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = __ldg(a + i);
    int2 w = b[i];
    uchar4 x = c[i];
    ushort2 y = d[i];
    double2 z = e[i];
    v.x += w.x + x.x + y.x;
    v.y += w.y + x.z + y.y + (float)z.x;
    v.z *= (float)z.y;
    out[i] = v;
}

__global__ void __launch_bounds__(128) operators(const int *a, int *b, volatile int *c, const char *d) {
    int i = threadIdx.x;
    b[i] = __ldca(a + i) + __ldcg(a + i + 1) + __ldcs(a + i + 2) + __ldlu(b + i + 3) + __ldcv(a + i + 4) + __ldg(d + i);
    __stwb(b + i + 5, 1);
    __stcg(b + i + 6, 2);
    __stcs(b + i + 7, 3);
    __stwt(b + i + 8, 4);
    c[i] = c[i + 1] + c[i];
}

struct Arguments { float scale; const float *x; float *y; int strides[5]; char mode; double bias; };

__global__ void by_value(Arguments args, const __grid_constant__ Arguments more, short a, bool b, unsigned char c, long long d) {
    int i = threadIdx.x;
    const float *p = b ? args.x : more.x;
    int stride = args.strides[i % 5] + more.strides[(i + a) % 5];
    args.y[i] = p[stride * i] * args.scale + (float)more.bias + c + d + args.mode;
}

__global__ void __maxnreg__(64) capped(float *x) { x[threadIdx.x] *= 3.0f; }
