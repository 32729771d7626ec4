// nvcc: -arch=sm_80; -arch=sm_90 -rdc=true
// Cooperative groups: tiles, coalesced groups, scans, grid barrier, memcpy_async.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

__global__ void tiles(int *x, float *y) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int i = block.thread_rank();
    x[i] = cg::reduce(tile, x[i], cg::plus<int>()) + cg::inclusive_scan(tile, x[i]);
    if (x[i] & 1) {
        auto some = cg::coalesced_threads();
        y[i] = some.shfl(y[i], 0) + some.size() + some.thread_rank();
    }
    block.sync();
    auto pair = cg::tiled_partition<2>(cg::tiled_partition<32>(block));
    y[i] += pair.shfl_xor(y[i], 1) + pair.meta_group_rank();
}

__global__ void grid_wide(float *x, int n) {
    auto grid = cg::this_grid();
    for (unsigned long long i = grid.thread_rank(); i < n; i += grid.size()) x[i] *= 2.0f;
    grid.sync();
    if (grid.thread_rank() == 0) x[0] = x[n - 1];
}

__global__ void staged(const float4 *x, float4 *y) {
    __shared__ float4 buffer[128];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, buffer, x + blockIdx.x * 128, sizeof(buffer));
    cg::wait(block);
    y[blockIdx.x * 128 + threadIdx.x] = buffer[127 - threadIdx.x];
}
