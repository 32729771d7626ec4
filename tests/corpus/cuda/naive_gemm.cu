// nvcc: -arch=sm_75; -arch=sm_80 -G
// Matrix products without tensor cores: one thread an element, and a tile in shared memory.
template <class T>
__global__ void plain(const T *a, const T *b, T *c, int m, int n, int k) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || col >= n) return;
    T sum = 0;
    for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
    c[row * n + col] = sum;
}
template __global__ void plain<float>(const float *, const float *, float *, int, int, int);
template __global__ void plain<double>(const double *, const double *, double *, int, int, int);
template __global__ void plain<long long>(const long long *, const long long *, long long *, int, int, int);

__global__ void tiled(const float *a, const float *b, float *c, int n) {
    __shared__ float x[16][16], y[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < n; t += 16) {
        x[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
        y[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + col];
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += x[threadIdx.y][i] * y[i][threadIdx.x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}
