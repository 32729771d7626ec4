// nvcc: -arch=sm_80; -arch=sm_90
// cp.async by hand and through __pipeline and cuda::pipeline, a double-buffered sum.
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>

__global__ void by_hand(const float4 *x, float4 *y, int n) {
    __shared__ float4 buffer[3][128];
    unsigned base = (unsigned)__cvta_generic_to_shared(&buffer[0][threadIdx.x]);
    for (int s = 0; s < 2; ++s) {
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(base + s * 2048), "l"(x + s * 128 + threadIdx.x), "r"(s < n ? 16 : 0));
        asm volatile("cp.async.commit_group;");
    }
    float4 sum = {};
    for (int i = 0; i < n; ++i) {
        asm volatile("cp.async.wait_group %0;" ::"n"(1) : "memory");
        __syncthreads();
        float4 v = buffer[i % 3][threadIdx.x];
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        if (i + 2 < n)
            asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(base + (i + 2) % 3 * 2048), "l"(x + (i + 2) * 128 + threadIdx.x));
        asm volatile("cp.async.commit_group;\n");
    }
    asm volatile("cp.async.wait_all;");
    y[threadIdx.x] = sum;
}

__global__ void primitives(const int *x, int *y) {
    __shared__ int s[256];
    __pipeline_memcpy_async(s + threadIdx.x, x + threadIdx.x, 4);
    __pipeline_memcpy_async(s + threadIdx.x + 128, x + threadIdx.x + 128, 4, threadIdx.x & 1 ? 4 : 0);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    y[threadIdx.x] = s[255 - threadIdx.x];
}

__global__ void barriers(const double *x, double *y) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ double s[128];
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(s + threadIdx.x, x + threadIdx.x, sizeof(double), bar);
    bar.arrive_and_wait();
    y[threadIdx.x] = s[127 - threadIdx.x];
}

__global__ void pipelines(const int *x, int *y, int n) {
    __shared__ int s[2][128];
    auto pipe = cuda::make_pipeline();
    int sum = 0;
    for (int i = 0; i < n; ++i) {
        pipe.producer_acquire();
        cuda::memcpy_async(&s[i & 1][threadIdx.x], x + i * 128 + threadIdx.x, 4, pipe);
        pipe.producer_commit();
        pipe.consumer_wait();
        sum += s[i & 1][threadIdx.x];
        pipe.consumer_release();
    }
    y[threadIdx.x] = sum;
}
