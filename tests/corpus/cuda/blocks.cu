// nvcc: -arch=sm_80; -arch=sm_90
// CUB's block primitives: reduction, scan, radix sort, load and store by transposition.
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>

__global__ void sums(const float *x, float *y) {
    __shared__ typename cub::BlockReduce<float, 128>::TempStorage storage;
    float sum = cub::BlockReduce<float, 128>(storage).Sum(x[blockIdx.x * 128 + threadIdx.x]);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

__global__ void scans(int *x) {
    using Load = cub::BlockLoad<int, 64, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using Store = cub::BlockStore<int, 64, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
    using Scan = cub::BlockScan<int, 64>;
    __shared__ union { Load::TempStorage load; Store::TempStorage store; Scan::TempStorage scan; } storage;
    int items[4];
    Load(storage.load).Load(x, items);
    __syncthreads();
    Scan(storage.scan).ExclusiveSum(items, items);
    __syncthreads();
    Store(storage.store).Store(x, items);
}

__global__ void sorts(unsigned *keys, short *values) {
    using Sort = cub::BlockRadixSort<unsigned, 64, 2, short>;
    __shared__ Sort::TempStorage storage;
    unsigned k[2] = {keys[2 * threadIdx.x], keys[2 * threadIdx.x + 1]};
    short v[2] = {values[2 * threadIdx.x], values[2 * threadIdx.x + 1]};
    Sort(storage).Sort(k, v, 0, 12);
    for (int i = 0; i < 2; ++i) keys[2 * threadIdx.x + i] = k[i], values[2 * threadIdx.x + i] = v[i];
}
