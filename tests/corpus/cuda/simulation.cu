// nvcc: -arch=sm_80; -arch=sm_90 -use_fast_math -lineinfo
// Everyday numeric kernels: n-body, stencil with halo, Mandelbrot, Black-Scholes, counter-based random numbers.
__global__ void bodies(const float4 *position, float4 *acceleration, int n) {
    __shared__ float4 tile[128];
    float4 p = position[blockIdx.x * 128 + threadIdx.x], a = {};
    for (int t = 0; t < n; t += 128) {
        tile[threadIdx.x] = position[t + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 128; ++j) {
            float dx = tile[j].x - p.x, dy = tile[j].y - p.y, dz = tile[j].z - p.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-6f), s = tile[j].w * inverse * inverse * inverse;
            a.x += dx * s, a.y += dy * s, a.z += dz * s;
        }
        __syncthreads();
    }
    acceleration[blockIdx.x * 128 + threadIdx.x] = a;
}

__global__ void stencil(const double *in, double *out, int nx, int ny, double c) {
    __shared__ double s[18][34];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y, i = threadIdx.x + 1, j = threadIdx.y + 1;
    bool inside = x < nx && y < ny;
    s[j][i] = inside ? in[y * nx + x] : 0.0;
    if (threadIdx.x == 0) s[j][0] = inside && x > 0 ? in[y * nx + x - 1] : 0.0;
    if (threadIdx.x == 31) s[j][33] = inside && x + 1 < nx ? in[y * nx + x + 1] : 0.0;
    if (threadIdx.y == 0) s[0][i] = inside && y > 0 ? in[(y - 1) * nx + x] : 0.0;
    if (threadIdx.y == 15) s[17][i] = inside && y + 1 < ny ? in[(y + 1) * nx + x] : 0.0;
    __syncthreads();
    if (inside) out[y * nx + x] = s[j][i] + c * (s[j][i - 1] + s[j][i + 1] + s[j - 1][i] + s[j + 1][i] - 4 * s[j][i]);
}

__global__ void mandelbrot(unsigned char *image, int width, float x0, float y0, float step) {
    float cx = x0 + step * (blockIdx.x * blockDim.x + threadIdx.x), cy = y0 + step * blockIdx.y, x = 0, y = 0;
    int n = 0;
    while (x * x + y * y < 4.0f && n < 255) {
        float t = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = t;
        ++n;
    }
    image[blockIdx.y * width + blockIdx.x * blockDim.x + threadIdx.x] = n;
}

__global__ void options(const float *price, const float *strike, const float *years, float *call, float *put, float rate, float volatility) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float root = sqrtf(years[i]), d1 = (logf(price[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / (volatility * root);
    float discounted = strike[i] * expf(-rate * years[i]), n1 = normcdff(d1), n2 = normcdff(d1 - volatility * root);
    call[i] = price[i] * n1 - discounted * n2;
    put[i] = discounted * (1 - n2) - price[i] * (1 - n1);
}

__global__ void philox(uint4 *out, uint2 key, unsigned long long offset) {
    unsigned long long n = offset + blockIdx.x * blockDim.x + threadIdx.x;
    uint4 c = make_uint4((unsigned)n, (unsigned)(n >> 32), 0, 0);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        unsigned h0 = __umulhi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x, h1 = __umulhi(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
        c = make_uint4(h1 ^ c.y ^ key.x, l1, h0 ^ c.w ^ key.y, l0);
        key.x += 0x9E3779B9u, key.y += 0xBB67AE85u;
    }
    out[n] = c;
}
