// nvcc: -arch=sm_90; -arch=sm_90a -lineinfo
// Thread block clusters: attributes, distributed shared memory, cluster barrier, griddepcontrol.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void __cluster_dims__(2, 2, 1) ring(float *x) {
    __shared__ float s[64];
    auto cluster = cg::this_cluster();
    s[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
    cluster.sync();
    float *other = cluster.map_shared_rank(s, (cluster.block_rank() + 1) % cluster.num_blocks());
    atomicAdd(other + threadIdx.x, 1.0f);
    cluster.sync();
    x[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];
}

__global__ void __launch_bounds__(128, 1, 4) bounded(int *x) {
    cudaGridDependencySynchronize();
    unsigned rank, mapped;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(16), "r"(rank ^ 1));
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;");
    x[threadIdx.x] = mapped;
    cudaTriggerProgrammaticLaunchCompletion();
}
