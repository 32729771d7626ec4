// nvcc: -arch=sm_75; -arch=sm_80 -lineinfo
// Static and dynamic shared memory, __align__, unions, several barriers.
template <int TILE>
__global__ void transpose(const float *__restrict__ in, float *__restrict__ out, int rows, int columns) {
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += blockDim.y)
        if (x < columns && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * columns + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += blockDim.y)
        if (x < rows && y + j < columns) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}
template __global__ void transpose<32>(const float *, float *, int, int);
template __global__ void transpose<16>(const float *, float *, int, int);

struct __align__(16) Cell { float4 value; union { int word; unsigned char bytes[4]; }; };

__global__ void dynamic(Cell *cells, int n) {
    extern __shared__ __align__(128) unsigned char scratch[];
    __shared__ Cell fixed[8];
    __shared__ char flags[3];
    Cell *mine = reinterpret_cast<Cell *>(scratch);
    for (int i = threadIdx.x; i < n; i += blockDim.x) mine[i] = cells[n - 1 - i];
    if (threadIdx.x < 8) fixed[threadIdx.x] = cells[threadIdx.x];
    int any = __syncthreads_or(mine[threadIdx.x].word & 1);
    int all = __syncthreads_and(mine[threadIdx.x].bytes[2] > 3);
    int count = __syncthreads_count(threadIdx.x & 1);
    if (threadIdx.x == 0) flags[0] = (char)(any + all + count);
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        mine[i].word += flags[0];
        mine[i].value.w += fixed[i & 7].value.x;
        cells[i] = mine[i];
    }
}
